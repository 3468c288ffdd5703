"""A shorter model: remove whole layers by position or importance. The baseline for any compression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.lazy import lazy_module
from tombola.masks.names import Scope, UnitsName
from tombola.search import Amount, Evidence, ScorerSettings, lowest, scorer
from tombola.search.importance import Importance, importance
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from tombola import masks
    from tombola.masks import Mask, Scores, Units
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")


class Layers(ScorerSettings):
    """Settings of a shorter model. `draw` sets how many layers stay."""

    reads_data: ClassVar[bool] = True
    trains_weights: ClassVar[bool] = True
    only_global: ClassVar[bool] = True

    method: Literal["layers"] = "layers"
    units: UnitsName = Field("layer", pattern="^layer$", description="whole layers")
    start: Literal["pretrained", "finetuned"] = Field("finetuned", description="model whose units are scored")
    keep: Literal["first", "even", "importance"] = Field(
        "first",
        description="layers to keep: the first, evenly spaced ones, or those with the most effect on the loss",
    )
    batches: int | None = Field(
        None,
        gt=0,
        description="keep: importance: training batches to score on; by default the whole training set once",
    )
    train: TrainSettings | None = Field(
        None,
        description="draw.rounds: training of the small model between rounds; unset keys are inherited from `train`",
    )

    @model_validator(mode="after")
    def _batches_to_score_on(self) -> Self:
        if self.batches is not None and self.keep != "importance":
            raise ValueError(f"batches: only works with keep: importance, not {self.keep}")
        return self


def choose(settings: Layers, scores: Scores, amount: Amount, scope: Scope, within: Mask | None) -> Mask:
    """Keep the first of the prunable layers, evenly spaced ones, or those with the highest scores.

    Layers that the model's family must keep count among the evenly spaced ones.
    """
    if settings.keep != "even":
        return lowest(settings, scores, amount, scope, within)
    count = scores.units.count
    gone = amount.get("layer", 0) if isinstance(amount, Mapping) else masks.removals(amount, count)
    layers = list(scores.units.layout.layers())
    kept = [layers[place] for place in even(len(layers), len(layers) - gone)]
    return masks.Mask.from_bools(
        scores.units, {group.name: torch.tensor([group.layer in kept]) for group in scores.units.groups}
    )


def even(count: int, left: int) -> list[int]:
    """Return `left` of `count` layers, evenly spaced, including the first and the last."""
    if left <= 1:
        return [0] * left
    return [round(place * (count - 1) / (left - 1)) for place in range(left)]


@scorer(Layers, choose=choose)
def layers(settings: Layers, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove whole layers: the last, evenly spaced ones, or those with the least effect on the loss (Taylor)."""
    if settings.keep == "importance":
        scored = Importance(units="layer", criterion="taylor", batches=settings.batches)
        return importance(scored, model, units, evidence)
    return masks.Scores(
        units, {group.name: torch.tensor([-float(group.layer or 0)]) for group in units.groups}
    )
