"""The log of a training run."""

import math
from typing import Any, NamedTuple, Self

from pydantic import BaseModel

from tombola.foundations.hardware import Precision

POINTS = 200
"""The maximum number of points in a loss curve."""


class Point(NamedTuple):
    """The mean loss of the steps since the previous point, and the last learning rate."""

    step: int
    loss: float
    learning_rate: float


class TrainLog(BaseModel, frozen=True):
    """The log of a run. Equal runs, resumed or not, agree in all but the last three fields."""

    steps: int
    epochs: float
    precision: Precision
    curve: list[Point]
    seconds: float
    examples_per_second: float
    resumed_from: int | None

    @classmethod
    def of(cls, history: list[dict[str, Any]], **figures: Any) -> Self:
        """Build the log of a finished run: its curve from the Trainer's log history, the other fields as given."""
        return cls(curve=curve(history), **figures)

    @classmethod
    def untrained(cls, precision: Precision) -> Self:
        """Return the log of a run without steps."""
        return cls.of(
            [], steps=0, epochs=0, precision=precision, seconds=0, examples_per_second=0, resumed_from=None
        )


def logging_interval(steps: int) -> int:
    """Return the steps between two points of the curve, so that it has at most `POINTS` including the last step."""
    return max(1, math.ceil(steps / (POINTS - 1)))


def curve(history: list[dict[str, Any]]) -> list[Point]:
    """Extract the loss curve from a Trainer's log history."""
    return [
        Point(entry["step"], entry["loss"], entry["learning_rate"]) for entry in history if "loss" in entry
    ]
