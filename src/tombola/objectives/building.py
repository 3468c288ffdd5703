"""From what a recipe says to the objective that a training minimises."""

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
    """The loss with a teacher's outputs beside it, R-Drop of weight `r_drop` around it, and around both the adversary.

    Args:
        loss: The loss on the labels.
        adversary: What raises the loss.
        r_drop: Weight of the divergence between two passes.
        distill: How much a teacher's outputs count; batches must then hold them (`WithTeacher`).
        consistency: Weight of the divergence between an example and its changed copy in the batch.
        around_pass: What else is to be minimised in every pass of the model, such as hidden states.
    """
    inner = losses[loss.kind].build(loss)
    if distill is not None:
        inner = Distilled(inner, distill)
    if consistency:
        inner = Consistent(inner, consistency)
    objective = around_pass(inner if r_drop is None else RDrop(inner, r_drop))
    return adversaries[adversary.kind].build(objective, adversary) if adversary is not None else objective
