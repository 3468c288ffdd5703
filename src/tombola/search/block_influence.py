"""Block influence: remove the layers that change their input least. (ShortGPT, Men et al. 2024)"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.masks.names import UnitsName
from tombola.search import Evidence, ScorerSettings, scorer
from tombola.search.calibration import Calibration, LayerWalk, check_passes
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel

    from tombola import masks
    from tombola.masks import Scores, Units
else:
    torch, masks = lazy_module("torch"), lazy_module("tombola.masks")


class BlockInfluence(ScorerSettings):
    """Settings of block influence. `draw` sets how many layers stay."""

    reads_data: ClassVar[bool] = True
    trains_weights: ClassVar[bool] = True

    method: Literal["block_influence"] = "block_influence"
    units: UnitsName = Field("layer", pattern="^layer$", description="whole layers")
    start: Literal["pretrained", "finetuned"] = Field("finetuned", description="model whose units are scored")
    calibration: Calibration = Field(Calibration(), description="training examples to calibrate on")
    train: TrainSettings | None = Field(
        None,
        description="draw.rounds: training of the small model between rounds; unset keys are inherited from `train`",
    )

    def check_model(self, config: PreTrainedConfig) -> None:
        """Raise if the model's layers cannot be scored one by one."""
        check_passes(config)

    def scored(self) -> Self:
        """One pass over the data serves any number of layers."""
        return self.model_copy(update={"train": None})


@scorer(BlockInfluence)
def block_influence(
    settings: BlockInfluence, model: PreTrainedModel, units: Units, evidence: Evidence
) -> Scores:
    """Remove the layers whose output is most like their input, by cosine similarity at each real token."""
    model.eval()
    calibration = settings.calibration
    walk = LayerWalk(model, evidence.examples(calibration.examples, calibration.batch_size))
    influence: dict[int, float] = {}
    for index in range(len(walk.layers)):
        evidence.progress(index, len(walk.layers))
        alike, tokens = 0.0, 0
        for number, after in enumerate(walk.run(index)):
            before = walk.hidden[number]
            cosines = torch.nn.functional.cosine_similarity(walk.rows(before), walk.rows(after), dim=-1)
            alike += float(cosines.sum(dtype=torch.float64))
            tokens += cosines.numel()
            walk.hidden[number] = after
        influence[index] = 1 - alike / tokens
    return masks.Scores(
        units, {group.name: torch.tensor([influence[group.layer or 0]]) for group in units.groups}
    )
