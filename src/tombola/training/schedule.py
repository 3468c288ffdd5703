"""The number of optimizer steps of a training, and where it stops."""

import math

from tombola.errors import TombolaError
from tombola.training.settings import TrainSettings

ROUNDING = 1e-9
"""Steps that floats may add: 0.1 of 3 epochs of 100 batches are 30.000000000000004 steps, and 30 are meant."""


def total_steps(settings: TrainSettings, batches: int, processes: int = 1) -> int:
    """Return the optimizer steps of the whole schedule, for `batches` per epoch distributed over `processes`."""
    if settings.steps is not None:
        return settings.steps
    steps = settings.epochs * math.ceil(math.ceil(batches / processes) / settings.accumulate)
    return math.ceil(steps - ROUNDING)


def last_step(stop_at: float | None, steps: int) -> int:
    """Return the step after which a training ends: the last one, or `stop_at`.

    Args:
        stop_at: A step, or a fraction of all steps if below 1; None trains to the end.
        steps: Optimizer steps of the whole schedule.

    Raises:
        TombolaError: If the training ends before that step.
    """
    if stop_at is None:
        return steps
    if stop_at <= 0:
        raise TombolaError(f"stop_at must be a step from 1 or a share of all steps, not {stop_at}")
    if stop_at < 1:
        return math.ceil(stop_at * steps - ROUNDING)
    if stop_at > steps:
        raise TombolaError(
            f"step {stop_at:g} is beyond the end of the training, which takes {steps} optimizer steps: use an "
            "earlier step (rewind_step, start_step), or train longer"
        )
    return int(stop_at)


def check_schedule(settings: TrainSettings, steps: int, stop_at: float | None = None) -> None:
    """Reject a warm-up or a stop beyond the last step.

    Call this once the number of steps is known; a plan does so before any training.

    Raises:
        TombolaError: If either lies beyond the last step.
    """
    if settings.warmup > steps > 0 and settings.warmup >= 1:
        raise TombolaError(
            f"warmup: {settings.warmup:g} steps exceed the whole training ({steps} optimizer steps): shorten the "
            "warm-up, set it as a share of all steps (0.1), or train longer"
        )
    if steps > 0:
        last_step(stop_at, steps)
