"""Pareto charts: clean score against robustness and against size."""

from __future__ import annotations

from collections.abc import Sequence

from tombola.report.parts import Frontier, Section, Spot
from tombola.report.rows import facets, line, score_format, title, words
from tombola.results.formatting import write_share
from tombola.results.frontier import front, rivals
from tombola.results.result import Result
from tombola.results.summary import Summary
from tombola.tasks.metrics import lower_is_better


def frontier(result: Result) -> Section | None:
    """Return charts of the clean score against every other aim, for each baseline and task."""
    charts: list[Frontier] = []
    clean = next((on for on in result.targets if result.condition(on) == "clean"), None)
    if clean is None:
        return None
    for group in rivals(result.summaries()):
        rows = [row for row in group if clean in row.scores]
        if len(rows) > 2:
            aims: list[str | None] = [
                on
                for on in result.targets
                if result.condition(on) != "clean" and all(on in row.scores for row in rows)
            ]
            charts += [_chart(rows, clean, on) for on in aims or [None]]
    lower = any(lower_is_better(row.metrics[on]) for row in result.summaries() for on in row.scores)
    better = (
        "If lower is better for a score, down or left is better" if lower else "Up and to the right is better"
    )
    note = f"{better}. The dotted line is the Pareto front. Hover over a point for details."
    return Section("Trade-offs", note, charts) if charts else None


def _chart(rows: Sequence[Summary], clean: str, on: str | None) -> Frontier:
    """Return the chart of the clean score against the score on `on`, or against sparsity if that is None."""
    aims = [(row.sparsity if on is None else row.scores[on].mean, row.scores[clean].mean) for row in rows]
    merits = [(row.sparsity if on is None else row.merit(on), row.merit(clean)) for row in rows]
    spots = [
        Spot(
            line(row),
            *aim,
            front=kept,
            details={"sparsity": write_share(row.sparsity), "seeds": str(row.seeds)},
            facets=facets(row),
        )
        for row, aim, kept in zip(rows, aims, front(merits), strict=True)
    ]
    x = "weights removed" if on is None else on
    axes = words(rows[0].baseline_key)
    return Frontier(
        title(axes, f"{clean} against {x}"),
        x,
        clean,
        spots,
        axes,
        x_format="percent" if on is None else score_format(rows[0].metrics[on]),
        y_format=score_format(rows[0].metrics[clean]),
        turn="end" if on is not None and lower_is_better(rows[0].metrics[on]) else "start",
    )
