"""From what a recipe says to the objective that a training minimises."""

from tombola.objectives import LogitLoss, Objective, objectives
from tombola.objectives.r_drop import RDrop
from tombola.objectives.settings import Adversary, Loss


def objective_of(loss: Loss, adversary: Adversary | None = None, r_drop: float | None = None) -> Objective:
    """The loss, R-Drop of weight `r_drop` around it, and around both the adversary."""
    inner: LogitLoss = objectives[loss.kind](**{name: value for name, value in loss if name != "kind"})
    objective: Objective = inner if r_drop is None else RDrop(inner, r_drop)
    if adversary is not None:
        objective = objectives[adversary.kind](objective, adversary)
    return objective
