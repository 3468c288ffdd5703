"""Prune a model layer by layer and update the remaining weights; the result is a mask and a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import ModelStage, UsesFamily
from tombola.pipeline.stages.defend import Defend, tokenizer_of
from tombola.pipeline.stages.score import scored_model
from tombola.search import SearchSettings
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask, Scope
    from tombola.pipeline.stages.draw import Draw


@dataclass(frozen=True, eq=False, kw_only=True)
class Prune(UsesFamily, ModelStage["Mask"]):
    """A pruned model with its mask."""

    kind: ClassVar = "prune"
    version: ClassVar = 1

    model: ModelSource
    data: DataSource
    search: SearchSettings
    sparsity: float
    scope: Scope
    seed: int
    max_length: int | None = None
    """The length to truncate texts to."""
    pattern: str | None = None
    """The pattern of every matrix: `2:4`, `16x16`."""
    of: ModelStage[Any] | None = None
    """The model to prune; by default the pre-trained one."""
    defend: Defend | None = None
    """The defense that corrects the texts first."""

    @property
    def label(self) -> str:
        """The amount to remove, and the method."""
        return f"prune {self.pattern or f'{self.sparsity:.0%}'} with {self.search.method}"

    def texts_read(self) -> None:
        """Return None: the number is unknown."""

    def run(self, space: Workspace) -> None:
        """Prune the model, and save it with its tokenizer and its mask."""
        from tombola.masks import MASK

        model, mask = prune_model(self, space, self.model.load(self.data.definition, self.seed))
        mask.save(space.folder / MASK)
        self.save(space, model, tokenizer_of(self.model, self.defend, space))

    def read(self, folder: Path) -> Mask:
        """Load the mask."""
        from tombola.masks import MASK, Mask

        return Mask.load(folder / MASK)


def prune_model(
    stage: Prune | Draw, space: Workspace, origin: PreTrainedModel
) -> tuple[PreTrainedModel, Mask]:
    """Prune the model that a stage starts from, layer by layer, and return it with its mask."""
    from tombola.masks.in_matrices import MatrixSelection
    from tombola.masks.patterns import parse_pattern
    from tombola.search.layerwise import LayerwiseSettings, prune_in_order

    assert isinstance(stage.search, LayerwiseSettings)
    assert stage.sparsity is not None, "counts are of structured units"
    model, units, evidence = scored_model(stage, space, origin)
    pattern = parse_pattern(stage.pattern) if stage.pattern else None
    selection = MatrixSelection(stage.sparsity, stage.scope, pattern)
    return model, prune_in_order(stage.search, model, units, evidence, selection)
