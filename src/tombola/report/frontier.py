"""The models that no other beats in both of two aims: clean score against robustness and against size."""

from __future__ import annotations

import numpy as np

from tombola.report.parts import Frontier, Section, Spot
from tombola.report.rows import facets, line, named, place, places
from tombola.results.result import Result, Summary
from tombola.results.statistics import pareto


def frontier(result: Result) -> Section | None:
    """Clean score against every other aim, a chart for each and for each place of the grid."""
    charts: list[Frontier] = []
    clean = next((on for on in result.targets if result.family(on) == "clean"), None)
    if clean is None:
        return None
    for here in places(result.summaries()):
        rows = [row for row in result.summaries() if clean in row.scores and place(row) == here]
        if len(rows) > 2:
            aims: list[str | None] = [
                on for on in result.targets if result.family(on) != "clean" and _all(rows, on)
            ]
            charts += [_chart(rows, clean, on, here) for on in aims or [None]]
    note = (
        "Up and to the right is better. The dotted line joins the models that none beats in both; point at one to "
        "read it."
    )
    return Section("Trade-offs", note, charts) if charts else None


def _all(rows: list[Summary], on: str) -> bool:
    return all(on in row.scores for row in rows)


def _chart(rows: list[Summary], clean: str, on: str | None, here: dict[str, str]) -> Frontier:
    """Against robustness on `on`, or against sparsity where that is None."""
    aims = [
        (row.sparsity if on is None else row.scores[on]["mean"], row.scores[clean]["mean"]) for row in rows
    ]
    spots = [
        Spot(
            line(row),
            *aim,
            front=bool(front),
            details=_details(row),
            facets=facets(row),
        )
        for row, aim, front in zip(rows, aims, pareto(np.array(aims)), strict=True)
    ]
    x = "weights removed" if on is None else on
    title = " · ".join(part for part in (named(here), f"{clean} against {x}") if part)
    return Frontier(title, x, clean, spots, here)


def _details(row: Summary) -> dict[str, str]:
    return {"sparsity": f"{row.sparsity:.0%}", "seeds": str(row.seeds)}
