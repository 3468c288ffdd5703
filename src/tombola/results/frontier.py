"""The Pareto front of a result: the rows that no other row dominates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tombola.errors import TombolaError, UnknownName
from tombola.results.statistics import pareto
from tombola.results.summary import Summary, by_baseline
from tombola.tasks.metrics import merit

if TYPE_CHECKING:
    from tombola.results.result import Result

SPEEDUP = "speed-up"
AIMS = ("sparsity", SPEEDUP, "clean", "out of distribution", "under attack")
"""The aims of a ticket: size, measured speed, and the mean score under each condition."""


class _Value(NamedTuple):
    """The value of a row in an aim, and its merit: the same value with a sign such that higher is better."""

    value: float
    merit: float


_Reached = Mapping[str, Mapping[str, _Value]]
"""A row's values by aim and name. The name is the aim's, except for scores of different metrics."""


def frontier(result: Result, aims: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the rows on the Pareto front, among rows with the same baseline and task.

    On the front, no other row is at least as good in every aim and better in one.

    Scores of different metrics are never averaged: an aim with several metrics becomes one aim per metric, such as
    `out of distribution (f1)`.

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
    reached = [
        (row, by_aim) for rows in by_baseline(result.summaries()) for row, by_aim in _reached(result, rows)
    ]
    chosen = aims or [aim for aim in AIMS if aim != SPEEDUP and all(aim in by_aim for _, by_aim in reached)]
    for aim in chosen:
        if not any(aim in by_aim for _, by_aim in reached):
            raise TombolaError(f"this result has no {aim!r}: evaluate, attack or measure its models first")
    chosen_values = {
        id(row): {name: value for aim in chosen for name, value in by_aim[aim].items()}
        for row, by_aim in reached
        if all(aim in by_aim for aim in chosen)
    }
    best = []
    for rows in rivals(row for row, _ in reached if id(row) in chosen_values):
        names = list(dict.fromkeys(name for row in rows for name in chosen_values[id(row)]))
        rows = [row for row in rows if chosen_values[id(row)].keys() >= set(names)]
        merits = [[chosen_values[id(row)][name].merit for name in names] for row in rows]
        best += [(row, names) for row, kept in zip(rows, front(merits), strict=True) if kept]
    return [
        {"point": row.point, **{name: chosen_values[id(row)][name].value for name in names}}
        for row, names in best
    ]


def rivals(rows: Iterable[Summary]) -> list[list[Summary]]:
    """Group the rows that compete with each other: those with the same baseline and the same task.

    Args:
        rows: The rows.
    """
    groups: dict[tuple[int, str], list[Summary]] = {}
    for number, group in enumerate(by_baseline(rows)):
        for row in group:
            groups.setdefault((number, str(row.cells[0].recipe.get("task"))), []).append(row)
    return list(groups.values())


def front(points: Sequence[Sequence[float]]) -> list[bool]:
    """Return whether each point is on the Pareto front; higher is better in every column."""
    return [bool(kept) for kept in pareto(np.array(points, dtype=float))]


def _reached(result: Result, rows: list[Summary]) -> list[tuple[Summary, _Reached]]:
    """Return each row with its values in all known aims. The speed-up of dense models is 1."""
    timed = any(row.speedup for row in rows)
    reached: list[tuple[Summary, _Reached]] = []
    for row in rows:
        by_aim = {"sparsity": {"sparsity": _Value(row.sparsity, row.sparsity)}, **_mean_scores(result, row)}
        if row.speedup or (row.dense and timed):
            ratio = next(iter(row.speedup.values())).ratio if row.speedup else 1.0
            by_aim[SPEEDUP] = {SPEEDUP: _Value(ratio, ratio)}
        reached.append((row, by_aim))
    return reached


def _mean_scores(result: Result, row: Summary) -> dict[str, dict[str, _Value]]:
    """Return the mean score of each metric under each condition."""
    scores: dict[str, dict[str, list[float]]] = {}
    for on, score in row.scores.items():
        scores.setdefault(result.condition(on), {}).setdefault(row.metrics[on], []).append(score.mean)
    return {
        aim: {
            (aim if len(by_metric) == 1 else f"{aim} ({metric})"): _Value(
                fmean(each), merit(fmean(each), metric)
            )
            for metric, each in by_metric.items()
        }
        for aim, by_metric in scores.items()
    }
