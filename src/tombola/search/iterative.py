"""Iterative magnitude pruning with rewinding. (BERT-Tickets, algorithm 1; SRNets with local scope)"""

from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.caching import shared
from tombola.search import Found, SearchSettings, StageBuilder, plan
from tombola.search.magnitude import Magnitude
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from tombola.pipeline.stages.base import MaskStage, ModelStage

Schedule = Literal["linear", "geometric"]


class Iterative(SearchSettings):
    """Settings of iterative magnitude pruning (IMP)."""

    trains_weights: ClassVar[bool] = True

    method: Literal["iterative"] = "iterative"
    step: float = Field(0.1, gt=0, lt=1, description="share to remove in each round")
    schedule: Schedule = Field(
        "linear",
        description="linear: a share of the original units; geometric: a share of the remaining ones",
    )
    rewind: bool = Field(
        True, description="return to the rewind point after each round; false: gradual pruning"
    )
    rewind_step: int = Field(0, ge=0, description="late rewinding: training step to return to")
    head: Literal["rewound", "fresh", "carried"] = Field(
        "rewound",
        description="task head at the start of a round: that of the rewind point, a new one each time, or the last "
        "round's",
    )
    start: Literal["pretrained", "finetuned"] = Field(
        "pretrained",
        description="where the first round starts, and with rewinding all others; finetuned: at the model fine-tuned "
        "by `train`, which is pruned before it is trained again",
    )
    train: TrainSettings | None = Field(
        None,
        description="training of the rounds; unset keys are inherited from `train`",
    )
    epochs: Literal["per_round", "in_all"] = Field(
        "per_round",
        description="whether the training's epochs or steps count per round, or for all rounds together up to a "
        "sparsity of 1, as in SRNets",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.start == "finetuned" and self.rewind_step:
            raise ValueError(
                "rewind_step: with start: finetuned, all rounds rewind to the fine-tuned model; leave it out"
            )
        if self.epochs == "in_all" and self.schedule == "geometric":
            raise ValueError("epochs: in_all needs schedule: linear, whose number of rounds is known")
        if self.train is not None and self.train.epochs == 0 and self.train.steps is None:
            raise ValueError(
                "train.epochs: must be more than 0, since rounds without training change nothing"
            )
        return self

    @property
    def length(self) -> float:
        """The fraction of the training's epochs in one round."""
        return 1.0 if self.epochs == "per_round" else 1 / ceil(1 / self.step - 1e-9)


def rounds(sparsity: float, step: float, schedule: Schedule) -> list[float]:
    """Return the sparsity after each round, ending at exactly `sparsity`.

    Linear removes `step` of the original count each time (10, 20 … 90 %); geometric removes `step` of what remains. A
    target between two rungs ends with a shorter last step, so that a sparser ticket shares its earlier rounds with a
    denser one.
    """
    done: list[float] = []
    current = 0.0
    while True:
        current = round(current + step if schedule == "linear" else 1 - (1 - current) * (1 - step), 12)
        if current >= sparsity - 1e-9:
            return [*done, sparsity]
        done.append(current)


@plan(Iterative)
def iterative(settings: Iterative, builder: StageBuilder, sparsity: float) -> Found:
    """Train, remove the smallest trained weights, rewind, and repeat (IMP).

    Retraining starts where every round starts: at the rewind point, or with `rewind: false` at the weights of the
    last round. If rounds start from a fine-tuned model, it is pruned before it is trained again.
    """
    how: dict[str, Any] = {"settings": settings.train, "length": settings.length}
    rewind_point: ModelStage[Any] | None = None
    if settings.start == "finetuned":
        trained = rewind_point = builder.train()
    else:
        if settings.rewind_step:
            rewind_point = builder.train(stop_at=settings.rewind_step, **how)
        trained = builder.train(start=rewind_point, **how)
    scorer = shared(Magnitude, **settings.coverage)
    mask: MaskStage | None = None
    targets = rounds(sparsity, settings.step, settings.schedule)
    for drawn, target in enumerate(targets):
        if mask is not None:
            trained = builder.train(mask=mask, **_start(settings, rewind_point, trained, drawn), **how)
        mask = builder.draw(scorer, target, of=trained, within=mask)
    assert mask is not None
    return Found(mask, **_start(settings, rewind_point, trained, len(targets)), trained=trained)


def _start(
    settings: Iterative, rewind_point: "ModelStage[Any] | None", trained: "ModelStage[Any]", drawn: int
) -> dict[str, Any]:
    """Return the weights and the head that the next training starts from, after the given number of draws."""
    return {
        "start": rewind_point if settings.rewind else trained,
        "head": trained if settings.head == "carried" else None,
        "fresh_head": drawn if settings.head == "fresh" else 0,
    }
