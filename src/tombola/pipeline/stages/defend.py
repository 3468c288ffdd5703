"""Fit a defense to the training texts; it corrects every text before the model's tokenizer sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.defenses import Defense, fit_defenses, load_defense
from tombola.defenses.base import Chain
from tombola.pipeline.references import DataSource, ModelSource
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False, kw_only=True)
class Defend(Stage[Chain]):
    """A fitted defense, in the form stored in a model's folder."""

    kind: ClassVar = "defend"
    version: ClassVar = 4

    data: DataSource
    defend: tuple[Defense, ...]

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "fit the defense"

    def identity(self) -> dict[str, Any]:
        """Include external material, such as a dictionary, which affects the corrections too."""
        identity = super().identity()
        material = [defense.material for defense in self.defend]
        return {**identity, "material": material} if any(material) else identity

    def run(self, space: Workspace) -> None:
        """Fit the defense and save it."""
        texts = [text for example in self.data.load().texts for text in example]
        fit_defenses(self.defend, texts).save(space.folder)

    def read(self, folder: Path) -> Chain:
        """Load the fitted defense."""
        return load_defense(folder)


def tokenizer_of(model: ModelSource, defend: Defend | None, space: Workspace) -> PreTrainedTokenizerBase:
    """Return the tokenizer of a pre-trained model, preceded by the recipe's defense."""
    from tombola.defenses.tokenizing import defended

    tokenizer = model.tokenizer()
    return tokenizer if defend is None else defended(tokenizer, space.read(defend))
