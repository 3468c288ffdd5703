"""How many optimizer steps a training takes."""

import math

from tombola.training.settings import TrainSettings


def total_steps(settings: TrainSettings, batches: int, processes: int = 1) -> int:
    """Optimizer steps of the whole schedule, for so many batches an epoch shared by so many processes."""
    if settings.steps is not None:
        return settings.steps
    return math.ceil(settings.epochs * math.ceil(math.ceil(batches / processes) / settings.accumulate))
