"""What a training run leaves behind besides the weights."""

import math
from typing import Any, NamedTuple, Self

from pydantic import BaseModel

from tombola.foundations.hardware import Precision

POINTS = 200
"""The most points that a loss curve has."""


class Point(NamedTuple):
    """The mean loss of the steps since the last point, and the learning rate of the last of them."""

    step: int
    loss: float
    learning_rate: float


class TrainLog(BaseModel, frozen=True):
    """The course of a run. All but the last three fields are equal for equal runs, resumed or not."""

    steps: int
    epochs: float
    precision: Precision
    curve: list[Point]
    seconds: float
    examples_per_second: float
    resumed_from: int | None

    @classmethod
    def of(cls, history: list[dict[str, Any]], **figures: Any) -> Self:
        """The log of a finished run: its curve from the Trainer's log history, the other fields as given."""
        return cls(curve=curve(history), **figures)

    @classmethod
    def untrained(cls, precision: Precision) -> Self:
        """The log of a run that takes no step."""
        return cls.of(
            [], steps=0, epochs=0, precision=precision, seconds=0, examples_per_second=0, resumed_from=None
        )


def logging_interval(steps: int) -> int:
    """Steps between two points of the curve, so that with one at the very end there are at most `POINTS`."""
    return max(1, math.ceil(steps / (POINTS - 1)))


def curve(history: list[dict[str, Any]]) -> list[Point]:
    """The loss curve in a Trainer's log history."""
    return [
        Point(entry["step"], entry["loss"], entry["learning_rate"]) for entry in history if "loss" in entry
    ]
