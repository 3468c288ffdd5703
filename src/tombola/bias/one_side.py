"""One side: what the words of one text of a pair reveal about the label. (Schuster et al. 2019)"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.bias.settings import FittedBias, bias_models
from tombola.bias.words import ngrams_of
from tombola.errors import RecipeError, UnknownName

if TYPE_CHECKING:
    from tombola.tasks import Split


@bias_models.register
class OneSide(FittedBias):
    """A linear model over the words of only one text of a pair: the claim, the hypothesis. (Schuster et al. 2019)"""

    method: Literal["one_side"] = "one_side"
    column: str | None = Field(None, description="column of the text to read; by default the task's last")
    ngrams: int = Field(2, ge=1, le=4, description="maximum length of the word n-grams used as features")

    def features(self, split: Split, model: Path | None) -> list[list[str]]:
        """Return the n-grams of the text."""
        names = split.task.text
        if self.column is not None and self.column not in names:
            raise RecipeError(
                str(UnknownName("text of " + split.task.name, self.column, names, where="bias.column"))
            )
        side = names.index(self.column) if self.column is not None else -1
        return [ngrams_of(texts[side], self.ngrams) for texts in split.texts]
