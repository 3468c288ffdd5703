"""The phase transition of winning, random and losing tickets. (Super Tickets)"""

from __future__ import annotations

from itertools import pairwise

from tombola.report.parts import Curves, Point, Section, Series
from tombola.report.rows import score_format, title, words
from tombola.results.decisions import Estimate, PhasePoint, Phases
from tombola.results.phases import ORDERS
from tombola.results.result import Result


def transition(result: Result) -> Section | None:
    """Return a chart for each set of tickets drawn by importance that has a dense model."""
    charts = [_chart(phases) for phases in result.phases() if len(phases.points) > 1]
    note = (
        "Phase I: the winning ticket is at least as good as the dense model. Phase III: it is worse by more than the "
        "dense model's spread, and not better than a random ticket of its size by more than that ticket's spread. "
        "Phase II: in between. A ring marks the super ticket, chosen on other data."
    )
    return Section("Phase transition", note, charts) if charts else None


def _chart(phases: Phases) -> Curves:
    best = phases.super_ticket.remaining if phases.super_ticket else None
    series = [Series("dense", [_point(0.0, phases.dense)], {"variant": "dense"}, level=True)]
    for order in ORDERS:
        line = [
            _point(
                1 - point.remaining,
                score,
                "super ticket" if order == "winning" and point.remaining == best else "",
            )
            for point in phases.points
            if (score := getattr(point, order))
        ]
        if line:
            series.append(Series(order, line, {"variant": order}))
    axes = words(phases.axes)
    return Curves(
        title(axes, phases.on),
        "parameters removed",
        phases.metric,
        series,
        axes,
        y_format=score_format(phases.metric),
        spans=_spans(phases.points),
        note=phases.note or "",
    )


def _spans(points: list[PhasePoint]) -> list[tuple[str, float, float]]:
    """Return the range of each phase, from half-way to the previous point to half-way to the next."""
    at = [1 - point.remaining for point in points]
    edges = [0.0, *((left + other) / 2 for left, other in pairwise(at)), at[-1]]
    spans: list[tuple[str, float, float]] = []
    for point, (start, end) in zip(points, pairwise(edges), strict=True):
        if point.phase is None:
            continue
        if spans and spans[-1][0] == point.phase:
            spans[-1] = (point.phase, spans[-1][1], end)
        else:
            spans.append((point.phase, start, end))
    return spans


def _point(x: float, score: Estimate, ring: str = "") -> Point:
    return Point(x, score.mean, score.low, score.high, ring)
