"""Iterative magnitude pruning with rewinding. (BERT-Tickets, algorithm 1; SRNets with local scope)"""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tombola.search import Found, SearchSettings, StageBuilder, plan
from tombola.search.magnitude import Magnitude

if TYPE_CHECKING:
    from tombola.pipeline.stages.base import MaskStage, ModelStage

Schedule = Literal["linear", "geometric"]


class Iterative(SearchSettings):
    """Settings of iterative magnitude pruning (IMP)."""

    method: Literal["iterative"] = "iterative"
    step: float = Field(0.1, gt=0, lt=1, description="share removed in each round")
    schedule: Schedule = Field(
        "linear", description="linear: a share of the original count; geometric: of what remains"
    )
    rewind: bool = Field(
        True, description="go back to the rewind point after each round; false: gradual pruning"
    )
    rewind_step: int = Field(0, ge=0, description="late rewinding: the training step that rounds go back to")
    head: Literal["rewound", "fresh", "carried"] = Field(
        "rewound",
        description="the task head at the start of a round: as it was there, new, or as last trained",
    )


def rounds(sparsity: float, step: float, schedule: Schedule) -> list[float]:
    """The sparsities after each round, ending at exactly `sparsity`.

    Linear removes `step` of the original count each time (10, 20 … 90 %); geometric removes `step` of what
    remains. Targets that are not on the ladder end with a shorter last step, so that a sparser ticket's
    earlier rounds are shared with a denser one's wherever the two agree.
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
    """Train, remove the smallest trained weights, rewind, and again (IMP).

    Retraining starts where every round starts: at the rewind point, or with `rewind: false` at the weights that the
    last round left.
    """
    rewind_point = builder.train(stop_at=settings.rewind_step) if settings.rewind_step else None
    scorer = Magnitude(**settings.coverage)
    trained = builder.train(start=rewind_point)
    mask: MaskStage | None = None
    for target in rounds(sparsity, settings.step, settings.schedule):
        if mask is not None:
            start, head = _start(settings, rewind_point, trained)
            trained = builder.train(mask=mask, start=start, head=head, fresh_head=settings.head == "fresh")
        mask = builder.draw(scorer, target, of=trained, within=mask)
    assert mask is not None
    start, head = _start(settings, rewind_point, trained)
    return Found(mask, start, head, trained)


def _start(
    settings: Iterative, rewind_point: "ModelStage[Any] | None", trained: "ModelStage[Any]"
) -> "tuple[ModelStage[Any] | None, ModelStage[Any] | None]":
    """The weights and the head that the next training starts from."""
    start = rewind_point if settings.rewind else trained
    return start, trained if settings.head == "carried" else None
