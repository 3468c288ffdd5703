"""Prune a model layer by layer with new weights for what is left: a mask and a model come out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.foundations.quiet import quiet
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import ModelStage
from tombola.pipeline.stages.defend import Defend, tokenizer_of
from tombola.pipeline.stages.score import scored_model
from tombola.search import SearchSettings
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask, Scope
    from tombola.pipeline.stages.draw import Draw


@dataclass(frozen=True, eq=False, kw_only=True)
class Prune(ModelStage["Mask"]):
    """A pruned model, and its mask beside it."""

    kind: ClassVar = "prune"
    version: ClassVar = 1

    model: ModelSource
    data: DataSource
    search: SearchSettings
    sparsity: float
    scope: Scope
    seed: int
    max_length: int | None = None
    """Where texts are cut."""
    pattern: str | None = None
    """What every matrix follows: `2:4`, `16x16`."""
    of: ModelStage[Any] | None = None
    """The model that is pruned; else the pre-trained one."""
    defend: Defend | None = None
    """What corrects the texts first."""

    @property
    def label(self) -> str:
        """How much is removed."""
        return f"prune {self.pattern or f'{self.sparsity:.0%}'} with {self.search.method}"

    def plugged(self) -> list[Any]:
        """The model's family, which a plugin may describe."""
        return [self.model.family()]

    def run(self, space: Workspace) -> None:
        """Prune the model, and keep it with its tokenizer and its mask."""
        from tombola.masks import MASK

        model, mask = prune_model(self, space, self.model.load(self.data.definition, self.seed))
        mask.save(space.folder / MASK)
        with quiet():
            model.save_pretrained(space.folder)
            tokenizer_of(self.model, self.defend, space).save_pretrained(space.folder)

    def read(self, folder: Path) -> Mask:
        """The mask."""
        from tombola.masks import MASK, Mask

        return Mask.load(folder / MASK)


def prune_model(
    stage: Prune | Draw, space: Workspace, origin: PreTrainedModel
) -> tuple[PreTrainedModel, Mask]:
    """The model that a stage starts from, pruned layer by layer, and its mask."""
    from tombola.masks.in_matrices import Selection
    from tombola.masks.patterns import parse_pattern
    from tombola.search.layerwise import LayerwiseSettings, prune_in_order

    assert isinstance(stage.search, LayerwiseSettings)
    assert stage.sparsity is not None, "counts are of structured units"
    model, units, evidence = scored_model(stage, space, origin)
    pattern = parse_pattern(stage.pattern) if stage.pattern else None
    selection = Selection(stage.sparsity, stage.scope, pattern)
    return model, prune_in_order(stage.search, model, units, evidence, selection)
