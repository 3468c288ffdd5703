"""Build the optimizer and the objective of a run with selective updates."""

from typing import Any

from transformers import PreTrainedModel

from tombola.objectives import Objective
from tombola.training.optimizers import optimizer_of
from tombola.training.selective.masks import Candidates
from tombola.training.selective.objective import DropoutRisk, TwoDraws
from tombola.training.selective.optimizer import SelectiveAdamW
from tombola.training.settings import TrainSettings


def selective(
    settings: TrainSettings, model: PreTrainedModel, objective: Objective, seed: int
) -> tuple[tuple[type[SelectiveAdamW], dict[str, Any]], Objective]:
    """Return the optimizer's class and arguments, and the objective, with a second dropout pass if needed."""
    assert settings.select is not None
    _, arguments = optimizer_of(settings)
    candidates, risk = Candidates(model), None
    if settings.select.two_passes:
        risk = DropoutRisk(candidates, settings.select, summed=settings.accumulate > 1)
        objective = TwoDraws(objective, risk, double=settings.r_drop is None)
    chosen = {"candidates": candidates, "selection": settings.select, "risk": risk, "seed": seed}
    return (SelectiveAdamW, {**arguments, **chosen}), objective
