"""From what a recipe says to the objective that a training minimises."""

from tombola.objectives import Objective
from tombola.objectives.r_drop import RDrop
from tombola.objectives.settings import Adversary, LossSettings, adversaries, losses


def objective_of(
    loss: LossSettings, adversary: Adversary | None = None, r_drop: float | None = None
) -> Objective:
    """The loss, R-Drop of weight `r_drop` around it, and around both the adversary."""
    inner = losses[loss.kind].build(loss)
    objective: Objective = inner if r_drop is None else RDrop(inner, r_drop)
    return adversaries[adversary.kind].build(objective, adversary) if adversary is not None else objective
