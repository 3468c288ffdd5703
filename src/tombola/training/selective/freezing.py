"""How often each tensor was left as it was, over training: a table that stays small however long the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

WINDOWS = 32
"""The most windows of a history. When they are full, each two become one of twice the steps."""

FREEZING = "freezing.json"

Shares = list[list[float | None]]
"""Layer × kind; None where a layer has no such tensor."""


class Window(BaseModel, frozen=True):
    """Steps `first` to `last`, and the share of them in which each tensor was frozen."""

    first: int
    last: int
    frozen: Shares


class Freezing(BaseModel, frozen=True):
    """The share of steps in which each candidate tensor was frozen: over the whole run, and by windows.

    A tensor that is frozen in part (element-wise, or by one of two masks) counts in part.
    """

    steps: int
    layers: list[int]
    kinds: list[str]
    frozen: Shares
    windows: list[Window]

    def tensors(self) -> dict[str, float]:
        """The share of steps in which each tensor was frozen, by `layer/kind`."""
        return {
            f"{layer}/{kind}": share
            for layer, row in zip(self.layers, self.frozen, strict=True)
            for kind, share in zip(self.kinds, row, strict=True)
            if share is not None
        }

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(self.model_dump_json())

    @classmethod
    def read(cls, path: Path) -> "Freezing":
        """Read what `write` has written."""
        return cls.model_validate_json(path.read_text())


def record(history: list[list[float]], step: int, frozen: Sequence[float]) -> None:
    """Add what was frozen in a step, counted from 1, to the sums of its window."""
    length = window_length(step)
    if length != window_length(step - 1):
        history[:] = [
            [sum(sums) for sums in zip(*history[start : start + 2], strict=True)]
            for start in range(0, len(history), 2)
        ]
    if (step - 1) // length == len(history):
        history.append([0.0] * len(frozen))
    history[-1] = [total + share for total, share in zip(history[-1], frozen, strict=True)]


def window_length(steps: int) -> int:
    """Steps in a window after so many in all: a power of two."""
    length = 1
    while steps > WINDOWS * length:
        length *= 2
    return length


def table(places: Sequence[tuple[int, str]], steps: int, history: Sequence[Sequence[float]]) -> Freezing:
    """The history of the tensors at these places, as shares."""
    layers = sorted({layer for layer, _ in places})
    kinds = list(dict.fromkeys(kind for _, kind in places))
    length = window_length(steps)

    def shares(sums: Sequence[float], over: int) -> Any:
        by_place = {place: total / over for place, total in zip(places, sums, strict=True)}
        return [[by_place.get((layer, kind)) for kind in kinds] for layer in layers]

    bounds = [(start, min(start + length, steps)) for start in range(0, steps, length)]
    totals = [sum(sums) for sums in zip(*history, strict=True)]
    return Freezing(
        steps=steps,
        layers=layers,
        kinds=kinds,
        frozen=shares(totals, steps),
        windows=[
            Window(first=start + 1, last=end, frozen=shares(sums, end - start))
            for (start, end), sums in zip(bounds, history, strict=True)
        ],
    )
