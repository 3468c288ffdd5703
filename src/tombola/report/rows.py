"""Name, group and filter the rows of a result on a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tombola.report.parts import AxisFormat, Estimate, Facets, Format, Point
from tombola.results import decisions
from tombola.results.formatting import SPARSITY, is_share, short_axis, write_share
from tombola.results.summary import Summary


def facets(row: Summary) -> dict[str, str]:
    """Return the facets of a row: its variant and its value on every axis except the sparsity."""
    return {"variant": row.variant, **words(row.axes)}


def line(row: Summary) -> str:
    """Return the row's name among rows with the same baseline: the variant and the axes of the ticket."""
    settings = [
        f"{short_axis(axis)} {value}"
        for axis, value in words(row.axes).items()
        if axis not in row.baseline_key
    ]
    return " · ".join([row.variant, *settings])


def model(row: Summary) -> str:
    """Return the row's name among all rows: that of its line, its baseline key and its sparsity."""
    parts = [part for part in (line(row), named(words(row.baseline_key))) if part]
    return " · ".join(parts if row.dense else [*parts, write_share(row.sparsity)])


def named(axes: Facets) -> str:
    """Join the values of axes for a title; empty if there are none."""
    return " · ".join(axes.values())


def title(axes: Facets, name: str) -> str:
    """Return the title of a chart: the axes' values and its name."""
    return " · ".join(part for part in (named(axes), name) if part)


def point(row: Summary, on: str, ring: str = "") -> Point:
    """Return a row's score at its sparsity."""
    score = row.scores[on]
    return Point(row.sparsity, score.mean, score.low, score.high, ring)


def estimate(row: Summary, on: str, *, best: bool = False) -> Estimate:
    """Return a row's score in the format of its metric."""
    score = row.scores[on]
    return Estimate(score.mean, score.low, score.high, best, score_format(row.metrics[on]))


def score_format(metric: str) -> AxisFormat:
    """Return the format of a metric's scores."""
    return "percent" if is_share(metric) else "correlation"


def difference_format(metric: str) -> Format:
    """Return the format of a metric's differences: points for a share, or a number."""
    return "points" if is_share(metric) else "change"


def difference(change: decisions.Estimate, metric: str) -> Estimate:
    """Return a difference of scores in the format of its metric."""
    return Estimate(change.mean, change.low, change.high, format=difference_format(metric))


def words(axes: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of all axes except the sparsity, as text."""
    return {axis: str(value) for axis, value in axes.items() if axis != SPARSITY}
