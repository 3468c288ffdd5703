"""Shallow: what words alone reveal about the label, for tasks with an unknown bias. (Utama et al. 2020)"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.bias.settings import FittedBias, bias_models
from tombola.bias.words import ngrams_of

if TYPE_CHECKING:
    import numpy as np

    from tombola.tasks import Split


@bias_models.register
class Shallow(FittedBias):
    """A linear model over the words of all texts, fitted to few examples, for any task. (Utama et al. 2020)"""

    method: Literal["shallow"] = "shallow"
    examples: int | None = Field(
        2000, gt=0, description="number of random training examples to fit; null: all"
    )
    ngrams: int = Field(1, ge=1, le=4, description="maximum length of the word n-grams used as features")

    def features(self, split: Split, model: Path | None) -> list[list[str]]:
        """Return the n-grams of all texts, each marked with its text."""
        return [
            [f"{side}:{words}" for side, text in enumerate(texts) for words in ngrams_of(text, self.ngrams)]
            for texts in split.texts
        ]

    def rows(self, rows: np.ndarray, seed: int) -> np.ndarray:
        """Return a random sample of the rows."""
        import numpy as np

        return np.random.default_rng(seed).permutation(rows)[: self.examples] if self.examples else rows
