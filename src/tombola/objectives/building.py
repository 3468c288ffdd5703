"""Build the objective of a training from its settings."""

from collections.abc import Callable

from tombola.objectives import Objective
from tombola.objectives.consistency import Consistent
from tombola.objectives.distillation import Distill, Distilled
from tombola.objectives.r_drop import RDrop
from tombola.objectives.settings import Adversary, LossSettings, adversaries, losses


def objective_of(
    loss: LossSettings,
    adversary: Adversary | None = None,
    r_drop: float | None = None,
    distill: Distill | None = None,
    consistency: float = 0.0,
    around_pass: Callable[[Objective], Objective] = lambda inner: inner,
) -> Objective:
    """Combine the loss with a teacher's outputs, wrap it in R-Drop, and wrap both in the adversary.

    Args:
        loss: The loss on the labels.
        adversary: The adversary that raises the loss.
        r_drop: The weight of the divergence between two passes.
        distill: The distillation settings; batches must then hold the teacher's outputs (`WithTeacher`).
        consistency: The weight of the divergence between an example and its changed copy in the batch.
        around_pass: Wraps the objective of a single pass, for example to match hidden states.
    """
    inner = losses[loss.kind].build(loss)
    if distill is not None:
        inner = Distilled(inner, distill)
    if consistency:
        inner = Consistent(inner, consistency)
    objective = around_pass(inner if r_drop is None else RDrop(inner, r_drop))
    return adversaries[adversary.kind].build(objective, adversary) if adversary is not None else objective
