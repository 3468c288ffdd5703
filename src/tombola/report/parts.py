"""The parts of a page: sections of tables, curves, maps and texts, as plain data that its script draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Facets = Mapping[str, str]
"""The variant and the value on every axis of the grid, by which readers can filter."""

Format = Literal[
    "text", "prose", "percent", "sparsity", "count", "number", "correlation", "ratio", "points", "change"
]
"""The format of a value. `points` and `change` are differences, of a share and of anything else."""

AxisFormat = Literal["percent", "correlation", "count", "number"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, in its own `format` or that of its column.

    `best` marks the best of several estimates, if its interval overlaps with no other.
    """

    value: float
    low: float
    high: float
    best: bool = False
    format: Format | None = None


Value = str | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, the format of its values, and the group heading above it."""

    name: str
    format: Format = "text"
    group: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, with the facets to filter by."""

    values: Sequence[Value]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows under columns; every table can be downloaded as CSV."""

    kind: ClassVar[str] = "table"
    name: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""


@dataclass(frozen=True)
class Point:
    """A mean at a value of the x axis, with its interval; `ring` is the reason for a ring around it."""

    x: float
    y: float
    low: float
    high: float
    ring: str = ""


@dataclass(frozen=True)
class Series:
    """A line of a chart, or a horizontal level if `level` is set."""

    name: str
    points: Sequence[Point]
    facets: Facets = field(default_factory=dict)
    level: bool = False


@dataclass(frozen=True)
class Curves:
    """Lines with bands; `spans` names ranges of the x axis, as [name, from, to].

    With `ticks`, the x values are positions in that list of labels.
    """

    kind: ClassVar[str] = "curves"
    name: str
    x: str
    y: str
    series: Sequence[Series]
    facets: Facets = field(default_factory=dict)
    x_format: AxisFormat = "percent"
    y_format: AxisFormat = "percent"
    spans: Sequence[tuple[str, float, float]] = ()
    ticks: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Interval:
    """A score of a model with its interval; `on` names its group."""

    on: str
    name: str
    value: float
    low: float
    high: float
    format: AxisFormat = "percent"
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Intervals:
    """Scores with intervals, grouped by data set and attack; those of one format share a scale."""

    kind: ClassVar[str] = "intervals"
    name: str
    rows: Sequence[Interval]
    facets: Facets = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Spot:
    """A model's values in two aims; `front` if no other model dominates it."""

    name: str
    x: float
    y: float
    front: bool
    details: Mapping[str, str]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Frontier:
    """Models by their values in two aims, and the line through the Pareto front.

    `turn`: where the line changes its height between two models of the front, at the first (if a higher x is better) or
    at the second, so that no corner is better than both.
    """

    kind: ClassVar[str] = "frontier"
    name: str
    x: str
    y: str
    spots: Sequence[Spot]
    facets: Facets = field(default_factory=dict)
    x_format: AxisFormat = "percent"
    y_format: AxisFormat = "percent"
    turn: Literal["start", "end"] = "start"


@dataclass(frozen=True)
class Heatmap:
    """A matrix of shares, shaded from 0 to 1; if `signed`, in two colours from 0 to the largest.

    Values are shown in percent, or unscaled if `scale` is 1.
    """

    kind: ClassVar[str] = "heatmap"
    name: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    corner: str = ""
    signed: bool = False
    digits: int = 0
    scale: int = 100
    note: str = ""
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Sentence:
    """A text before and after an attack: the name and the (piece, changed) pairs of each column."""

    title: str
    verdict: str
    old: Sequence[tuple[str, Sequence[tuple[str, bool]]]]
    new: Sequence[tuple[str, Sequence[tuple[str, bool]]]]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Sentences:
    """Attacked texts with the changed words marked."""

    kind: ClassVar[str] = "sentences"
    name: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Listing:
    """Preformatted text, such as a recipe."""

    kind: ClassVar[str] = "listing"
    name: str
    text: str


Part = Table | Curves | Intervals | Frontier | Heatmap | Sentences | Listing


@dataclass(frozen=True)
class Section:
    """A heading, a sentence on how to read the section, its parts, and caveats."""

    title: str
    note: str
    parts: Sequence[Part]
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Lead:
    """The top of a page: the conclusion in a sentence, the facts behind it, and caveats."""

    sentence: str
    facts: Sequence[str] = ()
    remarks: Sequence[str] = ()


def plain(thing: Any) -> Any:
    """Convert parts to lists and mappings for JSON, each part with its kind."""
    if isinstance(thing, str | int | float | None):
        return thing
    if isinstance(thing, Mapping):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, Sequence):
        return [plain(value) for value in thing]
    fields = {name: plain(getattr(thing, name)) for name in thing.__dataclass_fields__}
    return {"kind": thing.kind, **fields} if isinstance(thing, Part) else fields
