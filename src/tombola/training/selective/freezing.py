"""How often each tensor was frozen during training, in a table whose size does not grow with the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

WINDOWS = 32
"""The maximum number of windows in a history. When it is full, pairs merge into windows of twice the length."""

FREEZING = "freezing.json"

Shares = list[list[float | None]]
"""Layer × kind; None if a layer has no such tensor."""


class Window(BaseModel, frozen=True):
    """Steps `first` to `last`, and the fraction of them in which each tensor was frozen."""

    first: int
    last: int
    frozen: Shares


class Freezing(BaseModel, frozen=True):
    """The fraction of steps in which each candidate tensor was frozen, over the whole run and by window.

    A partly frozen tensor (element-wise, or by one of two masks) counts in part.
    """

    steps: int
    layers: list[int]
    kinds: list[str]
    frozen: Shares
    windows: list[Window]

    def tensors(self) -> dict[str, float]:
        """Return the fraction of steps in which each tensor was frozen, by `layer/kind`."""
        return {
            f"{layer}/{kind}": share
            for layer, row in zip(self.layers, self.frozen, strict=True)
            for kind, share in zip(self.kinds, row, strict=True)
            if share is not None
        }

    def write(self, path: Path) -> None:
        """Write the table as JSON."""
        path.write_text(self.model_dump_json())

    @classmethod
    def read(cls, path: Path) -> "Freezing":
        """Read a table that `write` wrote."""
        return cls.model_validate_json(path.read_text())


def record(history: list[list[float]], step: int, frozen: Sequence[float]) -> None:
    """Add the frozen fractions of a step (counted from 1) to the sums of its window."""
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
    """Return the length of a window after `steps` steps: a power of two."""
    length = 1
    while steps > WINDOWS * length:
        length *= 2
    return length


def table(places: Sequence[tuple[int, str]], steps: int, history: Sequence[Sequence[float]]) -> Freezing:
    """Return the history of the tensors at these places as fractions."""
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
