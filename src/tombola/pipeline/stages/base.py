"""Base classes of stages that produce a model, a mask, or scores of units."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from tombola.foundations.quiet import quiet
from tombola.store.stage import Stage, T, Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.masks import Mask, Scores
    from tombola.pipeline.references import ModelSource
    from tombola.tasks import Task

DRAW = "draw.json"
SCORES = "scores.safetensors"
LOG = "log.json"
EPOCHS = "epochs"
"""The folder with the model of every epoch, if a training keeps them."""


class StageResult(BaseModel):
    """The typed result of a stage; rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the result from a JSON file of a finished stage."""
        return cls.model_validate_json(path.read_bytes())


class Drawn(StageResult):
    """The statistics of a mask.

    `sparsity` is the share of the units removed, `weight_sparsity` that of the prunable weights, and `total_sparsity`
    that of all parameters.
    """

    granularity: str
    base: str
    units: int
    removed: int
    sparsity: float
    weight_sparsity: float
    total_sparsity: float
    parameter_sparsity: float
    """The share of the encoder's parameters, embeddings included, that the mask removes."""
    weights: int
    parameters: int
    by_layer: dict[str, float]
    by_kind: dict[str, float]
    emptied: list[str] = []
    """Matrices that are removed entirely, so that no signal passes through them."""

    @classmethod
    def of(cls, mask: Mask, parameters: int) -> Drawn:
        """Describe a mask of a model with this many parameters."""
        return cls(
            granularity=mask.units.granularity,
            base=mask.base.fingerprint,
            units=mask.count,
            removed=mask.removed,
            sparsity=mask.sparsity,
            weight_sparsity=mask.weight_sparsity,
            total_sparsity=mask.removed_weights / parameters,
            parameter_sparsity=mask.parameter_sparsity,
            weights=mask.units.weights,
            parameters=parameters,
            by_layer={str(layer): share for layer, share in mask.by_layer().items()},
            by_kind=mask.by_kind(),
            emptied=emptied(mask),
        )


def emptied(mask: Mask) -> list[str]:
    """Return the matrices that a mask of single weights removes entirely. Structured masks may remove whole layers."""
    if mask.units.granularity != "weight":
        return []
    matrices = [group for group in mask.units.groups if group.kind != "bias"]
    return [group.name for group in matrices if not mask.bits[group.name].any()]


class UsesFamily:
    """A mixin for stages whose result depends on the parts of their model, which its family names."""

    model: ModelSource

    def plugged(self) -> list[Any]:
        """Return the model's family, which a plugin may define."""
        return [self.model.family()]


@dataclass(frozen=True, eq=False, kw_only=True)
class ModelStage(Stage[T]):
    """A stage that produces a transformers model folder with its tokenizer."""

    @property
    def noun(self) -> str:
        """What the labels of other stages call the model."""
        return "the model"

    def load(self, space: Workspace, task: Task, epoch: int | None = None) -> PreTrainedModel:
        """Load the finished model, or that of an epoch, with its head for the task."""
        from tombola.models.loading import load_model

        folder = space.open(self)
        return load_model(folder if epoch is None else folder / EPOCHS / str(epoch), task, seed=0)

    def save(self, space: Workspace, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Save the model with its tokenizer."""
        with quiet():
            model.save_pretrained(space.folder)
            tokenizer.save_pretrained(space.folder)


def cut_of(stage: Stage[Any] | None) -> Stage[Any] | None:
    """Return the stage that cut a model out of a larger one, if any."""
    if stage is None or stage.kind == "shrink":
        return stage
    return cut_of(stage.inputs.get("start")) if stage.kind == "train" else None


@dataclass(frozen=True, eq=False, kw_only=True)
class MaskStage(Stage[Drawn]):
    """A stage that produces a mask and its description."""

    def read(self, folder: Path) -> Drawn:
        """Read the statistics of the mask."""
        return Drawn.load(folder / DRAW)

    def load(self, space: Workspace) -> Mask:
        """Load the mask."""
        from tombola.masks import MASK, Mask

        return Mask.load(space.open(self) / MASK)

    def save(self, space: Workspace, mask: Mask, parameters: int) -> None:
        """Save the mask and its description."""
        from tombola.masks import MASK

        mask.save(space.folder / MASK)
        space.write_json(DRAW, Drawn.of(mask, parameters))


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoreStage(Stage["Scores"]):
    """A stage that produces a score for every unit, from which masks are drawn at any sparsity."""

    def read(self, folder: Path) -> Scores:
        """Read the scores."""
        from tombola.masks import Scores

        return Scores.load(folder / SCORES)
