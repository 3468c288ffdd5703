"""Score against sparsity as an inline SVG: a line per variant, a level line for a dense model, intervals as bars."""

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 120, 16, 40
COLOURS = 8
"""Variants beyond these share colours again; the page's style sheet defines them."""


class Point(NamedTuple):
    """A mean at a sparsity, with its interval."""

    x: float
    y: float
    low: float
    high: float


class Curve(NamedTuple):
    """A variant's points from dense to sparse."""

    name: str
    points: list[Point]


class _Scale(NamedTuple):
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def chart(curves: list[Curve]) -> str:
    """The drawing, as markup in which every name is escaped."""
    values = [bound for curve in curves for point in curve.points for bound in (point.low, point.high)]
    low, high = max(0.0, min(values) - 0.02), min(1.0, max(values) + 0.02)
    ticks = sorted({0.0} | {point.x for curve in curves for point in curve.points})
    x = _Scale(0.0, ticks[-1], LEFT, WIDTH - RIGHT)
    y = _Scale(low, high, HEIGHT - BOTTOM, TOP)
    parts = [*_grid(x, y, ticks)]
    for index, curve in enumerate(curves):
        parts += _curve(curve, index % COLOURS, x, y)
    parts += _labels(curves, y)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {box} role="img" aria-label="score against sparsity">{"".join(parts)}</svg>'


def _grid(x: _Scale, y: _Scale, ticks: list[float]) -> Iterator[str]:
    for step in range(5):
        value = y.low + (y.high - y.low) * step / 4
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.0%}</text>'
    for value in ticks:
        yield f'<text x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value:.0%}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">weights removed</text>'


def _curve(curve: Curve, colour: int, x: _Scale, y: _Scale) -> Iterator[str]:
    points = curve.points
    if len(points) == 1 and points[0].x == 0:
        level = y(points[0].y)
        yield f'<line class="level c{colour}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level:.1f}" y2="{level:.1f}"/>'
    path = " ".join(f"{x(point.x):.1f},{y(point.y):.1f}" for point in points)
    yield f'<polyline class="c{colour}" points="{path}"/>'
    for point in points:
        at = x(point.x)
        yield f'<line class="c{colour}" x1="{at:.1f}" x2="{at:.1f}" y1="{y(point.low):.1f}" y2="{y(point.high):.1f}"/>'
        hover = f"{escape(curve.name)}: {point.y:.1%} ({point.low:.1%} to {point.high:.1%}) at {point.x:.0%}"
        yield f'<circle class="c{colour}" cx="{at:.1f}" cy="{y(point.y):.1f}" r="4"><title>{hover}</title></circle>'


def _labels(curves: list[Curve], y: _Scale) -> Iterator[str]:
    """Names at the ends of the curves, pushed apart where they would overlap."""
    ends = sorted((y(curve.points[-1].y), index, curve.name) for index, curve in enumerate(curves))
    last = float("-inf")
    for end, index, name in ends:
        last = max(end + 4, last + 15)
        yield f'<text class="name c{index % COLOURS}" x="{WIDTH - RIGHT + 10}" y="{last:.1f}">{escape(name)}</text>'
