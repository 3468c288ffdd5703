"""The phase transition: winning, random and losing tickets, and where the winning ones stop to win. (Super Tickets)"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tombola.report.parts import Curves, Point, Section, Series
from tombola.results.phases import ORDERS, phases, places
from tombola.results.result import Result


def transition(results: Sequence[Result]) -> Section | None:
    """A chart for each place of each result that has a dense model and tickets by importance."""
    charts = [
        _chart(found)
        for result in map(_of_one_recipe, results)
        if result
        for place in places(result)
        if (found := phases(result, place=place))
    ]
    note = (
        "Phase I: the winning ticket is not below the dense model. II: below it, and above a random ticket of its "
        "size. III: within the spread of a random one. A ring marks the super ticket, chosen on other data."
    )
    return Section("Phase transition", note, charts) if charts else None


def _of_one_recipe(result: Result) -> Result | None:
    """A result with the recipe whose tickets are by importance; None for other results and wider studies."""
    recipe = result.content["recipe"]
    inner = recipe.get("recipes")
    if isinstance(inner, list) and len(inner) == 1 and not recipe.keys() & {"grid", "over"}:
        recipe = inner[0]
    if "task" not in recipe or '"importance"' not in json.dumps(recipe):
        return None
    return Result({**result.content, "recipe": recipe}, result.folder)


def _chart(found: dict[str, Any]) -> Curves:
    dense, points, best = found["dense"], found["points"], found["super_ticket"]
    series = [Series("dense", [_point(0.0, dense)], {"variant": "dense"}, level=True)]
    for order in ORDERS:
        own = [(point, point[order]) for point in points if point[order]]
        ringed = best["remaining"] if best and order == "winning" else None
        line = [
            _point(1 - point["remaining"], score, "super ticket" if point["remaining"] == ringed else "")
            for point, score in own
        ]
        if line:
            series.append(Series(order, line, {"variant": order}))
    place = {axis: str(value) for axis, value in found["place"].items()}
    title = " · ".join([*place.values(), found["on"]])
    return Curves(title, "parameters removed", found["metric"], series, place, spans=_spans(points))


def _spans(points: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    """The stretches of one phase, each from half-way to the point before to half-way to the one after."""
    at = [1 - point["remaining"] for point in points]
    edges = [0.0, *((one + other) / 2 for one, other in pairwise(at)), at[-1]]
    spans: list[tuple[str, float, float]] = []
    for point, (start, end) in zip(points, pairwise(edges), strict=True):
        if spans and spans[-1][0] == point["phase"]:
            spans[-1] = (point["phase"], spans[-1][1], end)
        else:
            spans.append((point["phase"], start, end))
    return spans


def _point(x: float, score: dict[str, float], ring: str = "") -> Point:
    return Point(x, score["mean"], score["low"], score["high"], ring)
