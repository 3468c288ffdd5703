"""Tidy tables of a result: one observation per row, for pandas, spreadsheets and plots."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tombola.results.differences import Difference, differences
from tombola.results.doubts import nothing_to_match
from tombola.results.frontier import frontier
from tombola.results.matching import standing
from tombola.results.summary import Summary, baselines, estimate_scores

if TYPE_CHECKING:
    from tombola.results.result import Result


def observations(result: Result) -> list[dict[str, Any]]:
    """Return a row for every score of every cell."""
    return [
        {
            **row.point,
            "sparsity": row.sparsity,
            "seed": cell.seed,
            "on": on,
            "metric": metric,
            **score.as_dict(),
        }
        for row in result.summaries()
        for cell in row.cells
        for on, metrics in cell.scores.items()
        for metric, score in metrics.items()
    ]


def tidy_rows(result: Result) -> list[dict[str, Any]]:
    """Return a row for each variant, grid point, data set and metric: statistics over seeds, decisions, and a test.

    `frontier`: whether the row is on the Pareto front of its baseline and task. `matching`: how a ticket compares with
    its first dense model; None if there is nothing to match. `difference` and `p` (the paired t test, with Holm's
    correction) compare the row with the variant `against`, the first comparable one.
    """
    rows = result.summaries()
    best = {json.dumps(row["point"]) for row in frontier(result)}
    tests = {on: _against_first(result, on) for on in result.targets}
    conditions = {on: result.condition(on) for on in result.targets}
    measured = any(row.speedup for row in rows)
    table = []
    for row, dense in zip(rows, baselines(rows), strict=True):
        name = json.dumps(row.point)
        for on, headline in row.metrics.items():
            test = tests[on].get(name)
            decided = {
                "matching": _standing(row, dense, on, result),
                "against": test.first["variant"] if test else None,
                "difference": -test.mean if test else None,
                "p": test.holm if test else None,
            }
            for metric in row.common_metrics(on):
                estimate = estimate_scores([cell.scores[on][metric] for cell in row.cells], metric)
                table.append(
                    {
                        **row.point,
                        "sparsity": row.sparsity,
                        "on": on,
                        "condition": conditions[on],
                        "metric": metric,
                        **estimate.model_dump(),
                        "frontier": name in best,
                        **(decided if metric == headline else dict.fromkeys(decided)),
                        **(_speedup(row) if measured else {}),
                    }
                )
    return table


def _standing(row: Summary, dense: Summary | None, on: str, result: Result) -> str | None:
    if row.dense or dense is None or on not in dense.scores or nothing_to_match(dense, on, result):
        return None
    return standing(row, dense, on)


def _speedup(row: Summary) -> dict[str, float | None]:
    """Return the speed-up at the smallest batch size."""
    speedup = next(iter(row.speedup.values()), None)
    return {
        "speedup": speedup.ratio if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
    }


def _against_first(result: Result, on: str) -> dict[str, Difference]:
    """Return the test of each row against the first comparable row: the dense model, if that comes first."""
    tests: dict[str, Difference] = {}
    for difference in differences(result, on):
        tests.setdefault(json.dumps(difference.second), difference)
    return tests
