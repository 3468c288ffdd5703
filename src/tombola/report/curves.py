"""Lines: scores against sparsity, robustness over epochs, the phases of a lottery."""

from __future__ import annotations

from typing import Any

from tombola.evaluation.intervals import mean_interval
from tombola.report.parts import Curves, Point, Section, Series
from tombola.report.rows import facets, line, model, named, place, places, point
from tombola.results.result import Result, Summary


def against_sparsity(result: Result) -> Section | None:
    """Every score against the share of weights removed, a chart for each data set and place of the grid."""
    charts = [
        chart
        for here in places(result.summaries())
        for on in result.targets
        if (chart := _chart(result, on, here))
    ]
    note = (
        "Bands are 95 % intervals and the dashed line is the dense model. A ring marks the sparsest ticket of its "
        "variant that still matches the dense model."
    )
    return Section("Score against sparsity", note, charts) if charts else None


def _chart(result: Result, on: str, here: dict[str, str]) -> Curves | None:
    rows = [row for row in result.summaries() if on in row.scores and place(row) == here]
    if len({row.sparsity for row in rows}) < 2:
        return None
    matches = {one.variant: one.within for one in reversed(result.matching(on)) if _words(one.place) == here}
    lines: dict[str, list[Summary]] = {}
    for row in rows:
        lines.setdefault(line(row), []).append(row)
    series = [
        Series(
            name,
            [
                point(row, on, "matches" if row.sparsity and matches.get(row.variant) == row.sparsity else "")
                for row in sorted(own, key=lambda row: row.sparsity)
            ],
            facets(own[0]),
            level=all(row.sparsity == 0 for row in own),
        )
        for name, own in lines.items()
    ]
    title = " · ".join(part for part in (named(here), on) if part)
    return Curves(title, "weights removed", result.headline(on), series, facets=here)


def over_epochs(result: Result) -> Section | None:
    """Accuracy under attack after every epoch: longer training alone makes a model more robust."""
    charts = []
    for attack in dict.fromkeys(name for cell in result.cells for name in cell.get("curves", {})):
        series = []
        for cells in result.groups():
            runs = [cell["curves"][attack] for cell in cells if attack in cell.get("curves", {})]
            if runs:
                row = result.summary(cells)
                series.append(Series(model(row), _epochs(runs), facets(row)))
        charts.append(Curves(attack, "epoch", "accuracy under attack", series, x_format="count"))
    note = (
        "Accuracy under attack of the model of every epoch, with 95 % intervals. Compare models that were trained "
        "equally long: more epochs alone raise it."
    )
    return Section("Robustness over epochs", note, charts) if charts else None


def _epochs(runs: list[list[dict[str, Any]]]) -> list[Point]:
    """One seed has its binomial interval, several have that of their mean."""
    points = []
    for epoch, found in enumerate(zip(*runs, strict=True), start=1):
        if len(found) == 1:
            low, high = found[0]["accuracy_under_attack_interval"]
            points.append(Point(epoch, found[0]["accuracy_under_attack"], low, high))
        else:
            mean, _, low, high = mean_interval([one["accuracy_under_attack"] for one in found])
            points.append(Point(epoch, mean, low, high))
    return points


def _words(axes: dict[str, Any]) -> dict[str, str]:
    return {axis: str(value) for axis, value in axes.items()}
