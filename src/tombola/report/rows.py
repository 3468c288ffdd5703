"""How the rows of a result are named, grouped and filtered on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tombola.report.parts import AxisFormat, Estimate, Facets, Format, Point
from tombola.results.formatting import SPARSITY, is_share, short_axis
from tombola.results.summary import Summary


def facets(row: Summary) -> dict[str, str]:
    """What a row is filtered by: its variant and its value on every axis but the sparsity."""
    return {"variant": row.variant, **words(row.axes)}


def line(row: Summary) -> str:
    """What a row is called beside those with its baseline: the variant, and what else tells it from them."""
    own = [
        f"{short_axis(axis)} {value}"
        for axis, value in words(row.axes).items()
        if axis not in row.baseline_key
    ]
    return " · ".join([row.variant, *own])


def model(row: Summary) -> str:
    """What a row is called among all rows: its line, its baseline key, its sparsity."""
    parts = [part for part in (line(row), named(words(row.baseline_key))) if part]
    return " · ".join(parts if row.dense else [*parts, f"{row.sparsity:.0%}"])


def named(axes: Facets) -> str:
    """Values of axes in a title, or nothing where there are none."""
    return " · ".join(axes.values())


def title(axes: Facets, name: str) -> str:
    """The name of a chart, with the values that tell it from others."""
    return " · ".join(part for part in (named(axes), name) if part)


def point(row: Summary, on: str, ring: str = "") -> Point:
    """A row's score at its sparsity."""
    score = row.scores[on]
    return Point(row.sparsity, score.mean, score.low, score.high, ring)


def estimate(row: Summary, on: str, *, best: bool = False) -> Estimate:
    """A row's score, written in the unit of its metric."""
    score = row.scores[on]
    return Estimate(score.mean, score.low, score.high, best, score_format(row.metrics[on]))


def score_format(metric: str) -> AxisFormat:
    """How scores of a metric are written."""
    return "percent" if is_share(metric) else "correlation"


def difference_format(metric: str) -> Format:
    """How differences in a metric are written: points of a share, or a number."""
    return "points" if is_share(metric) else "change"


def words(axes: Mapping[str, Any]) -> dict[str, str]:
    """The values of all axes but the sparsity, as text."""
    return {axis: str(value) for axis, value in axes.items() if axis != SPARSITY}
