"""The Pareto front of a result: the rows that no other beats in every aim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.errors import TombolaError, UnknownName
from tombola.results.statistics import pareto
from tombola.results.summary import Summary, by_baseline

if TYPE_CHECKING:
    from tombola.results.result import Result

SPEEDUP = "speed-up"
AIMS = ("sparsity", SPEEDUP, "clean", "out of distribution", "under attack")
"""The aims of a ticket: size, measured speed, and the mean score under each condition."""


def frontier(result: Result, aims: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows that no other row with the same baseline beats in every aim.

    Args:
        result: The result.
        aims: Some of `AIMS`; `speed-up` is that of the smallest batch. By default all except `speed-up` that every
            row has.
    """
    for aim in aims or ():
        if aim not in AIMS:
            raise UnknownName("aim", aim, AIMS)
    if not result.cells:
        return []
    reached = [(row, own) for rows in by_baseline(result.summaries()) for row, own in _reached(result, rows)]
    chosen = aims or [aim for aim in AIMS if aim != SPEEDUP and all(aim in own for _, own in reached)]
    for aim in chosen:
        if not any(aim in own for _, own in reached):
            raise TombolaError(f"this result has no {aim!r}: evaluate, attack or measure its models first")
    known = {id(row): own for row, own in reached if all(aim in own for aim in chosen)}
    best = [
        row
        for rows in by_baseline(row for row, _ in reached if id(row) in known)
        for row, kept in zip(
            rows,
            front([[_merit(result, row, aim, known[id(row)]) for aim in chosen] for row in rows]),
            strict=True,
        )
        if kept
    ]
    return [{"point": row.point, **{aim: known[id(row)][aim] for aim in chosen}} for row in best]


def front(points: Sequence[Sequence[float]]) -> list[bool]:
    """Return whether each point is on the Pareto front; higher is better in every column."""
    return [bool(kept) for kept in pareto(np.array(points, dtype=float))]


def _merit(result: Result, row: Summary, aim: str, reached: Mapping[str, float]) -> float:
    """Return a row's value in an aim, with perplexities and the like turned so that higher is better."""
    scores = [row.merit(on) for on in row.scores if result.condition(on) == aim]
    return fmean(scores) if scores else reached[aim]


def _reached(result: Result, rows: list[Summary]) -> list[tuple[Summary, dict[str, float]]]:
    """Return each row with its values in all known aims. The speed-up of dense models is 1."""
    timed = any(row.speedup for row in rows)
    found = []
    for row in rows:
        scores: dict[str, list[float]] = {}
        for on, score in row.scores.items():
            scores.setdefault(result.condition(on), []).append(score.mean)
        own = {"sparsity": row.sparsity, **{name: fmean(each) for name, each in scores.items()}}
        if row.speedup:
            own[SPEEDUP] = next(iter(row.speedup.values())).ratio
        elif row.dense and timed:
            own[SPEEDUP] = 1.0
        found.append((row, own))
    return found
