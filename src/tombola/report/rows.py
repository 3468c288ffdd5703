"""How the rows of a result are called, grouped and filtered on a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tombola.report.parts import Facets, Point
from tombola.results.result import Summary

SPARSITY = "draw.sparsity"


def facets(row: Summary) -> dict[str, str]:
    """What a row is filtered by: its variant and its place on every axis but the sparsity."""
    return {"variant": row.variant, **_words(row.axes)}


def place(row: Summary) -> dict[str, str]:
    """What a row shares with the dense model that it is compared with."""
    return _words(row.place)


def line(row: Summary) -> str:
    """What a row is called in a chart of its place: the variant, and what else tells it from others there."""
    own = [f"{short(axis)} {value}" for axis, value in _words(row.axes).items() if axis not in row.place]
    return " · ".join([row.variant, *own])


def model(row: Summary) -> str:
    """What a row is called among all rows: its line, its place, its sparsity."""
    where = [part for part in (line(row), named(place(row))) if part]
    return " · ".join([*where, f"{row.sparsity:.0%}"] if row.sparsity else where)


def short(axis: str) -> str:
    """An axis without the mapping that it is in: search.step → step."""
    return axis.rsplit(".", 1)[-1]


def named(where: Facets) -> str:
    """A place in words, or nothing where there is but one."""
    return " · ".join(where.values())


def places(rows: Iterable[Summary]) -> list[dict[str, str]]:
    """The different places of some rows, in order."""
    found: list[dict[str, str]] = []
    for row in rows:
        if (here := place(row)) not in found:
            found.append(here)
    return found


def point(row: Summary, on: str, ring: str = "") -> Point:
    """A row's score at its sparsity."""
    score = row.scores[on]
    return Point(row.sparsity, score["mean"], score["low"], score["high"], ring)


def _words(axes: dict[str, Any]) -> dict[str, str]:
    return {axis: str(value) for axis, value in axes.items() if axis != SPARSITY}
