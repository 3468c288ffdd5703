"""How small and fast results are once they are shipped, where the recipe's `measure` asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tombola.results.result import Result


@dataclass(frozen=True)
class Speed:
    """What a shipped model takes: parameters, bytes on disk, and the median time of its smallest batch."""

    parameters: float
    bytes: float
    milliseconds: float
    batch: int


def read_speeds(result: Result) -> list[Speed | None]:
    """For every row of a result its mean over seeds, or None where nothing was measured."""
    return [
        _mean([cell["measured"]["ticket"] for cell in cells if cell.get("measured")])
        for cells in result.groups()
    ]


def _mean(sizes: list[dict[str, Any]]) -> Speed | None:
    if not sizes:
        return None
    batch = min(sizes[0]["latency"], key=int)
    return Speed(
        parameters=fmean(one["parameters"] for one in sizes),
        bytes=fmean(one["bytes"] for one in sizes),
        milliseconds=1000 * fmean(one["latency"][batch] for one in sizes),
        batch=int(batch),
    )
