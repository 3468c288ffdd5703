"""What a page is made of: sections of tables, curves, maps and texts, as plain data that its script draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Facets = Mapping[str, str]
"""What a reader may filter by: the variant and the value on every axis of the grid."""

Format = Literal[
    "text", "prose", "percent", "sparsity", "count", "number", "correlation", "ratio", "points", "change"
]
"""How a value is written. `points` and `change` are differences, of a share and of anything else."""

AxisFormat = Literal["percent", "correlation", "count", "number"]


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, written as `format`, or else as its column is.

    `best` marks the best of those it is compared with, if its interval overlaps with none of theirs.
    """

    value: float
    low: float
    high: float
    best: bool = False
    format: Format | None = None


Value = str | float | Estimate | None


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, what is above it, and how its values are written."""

    name: str
    format: Format = "text"
    group: str = ""


@dataclass(frozen=True)
class Row:
    """A row of a table, with what it is filtered by."""

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
    """A mean at a value of the horizontal axis, with its interval; `ring` says why it is ringed."""

    x: float
    y: float
    low: float
    high: float
    ring: str = ""


@dataclass(frozen=True)
class Series:
    """One line of a chart, or one level over its whole width where `level` is set."""

    name: str
    points: Sequence[Point]
    facets: Facets = field(default_factory=dict)
    level: bool = False


@dataclass(frozen=True)
class Curves:
    """Lines with bands over one axis; `spans` names stretches of that axis, as [name, from, to].

    With `ticks` the values of the axis are places in that list, whose names are written below it.
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
    """One score of one model, with its interval; `on` names the group that it stands in."""

    on: str
    name: str
    value: float
    low: float
    high: float
    format: AxisFormat = "percent"
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Intervals:
    """Scores with their intervals on one scale, in a group for each data set and attack."""

    kind: ClassVar[str] = "intervals"
    name: str
    rows: Sequence[Interval]
    facets: Facets = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Spot:
    """One model between two aims; `front` if none is better in both."""

    name: str
    x: float
    y: float
    front: bool
    details: Mapping[str, str]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Frontier:
    """Models between two aims, and the line of those that none beats."""

    kind: ClassVar[str] = "frontier"
    name: str
    x: str
    y: str
    spots: Sequence[Spot]
    facets: Facets = field(default_factory=dict)
    x_format: AxisFormat = "percent"
    y_format: AxisFormat = "percent"


@dataclass(frozen=True)
class Heatmap:
    """A matrix of shares, shaded from 0 to 1; where it is signed, in two colours from 0 to the largest.

    Values are written in percent, or as they are where `scale` is 1.
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
    """A text before and after an attack: for each column its name and its (piece, changed) pairs."""

    title: str
    verdict: str
    old: Sequence[tuple[str, Sequence[tuple[str, bool]]]]
    new: Sequence[tuple[str, Sequence[tuple[str, bool]]]]
    facets: Facets = field(default_factory=dict)


@dataclass(frozen=True)
class Sentences:
    """Attacked texts, changed words marked."""

    kind: ClassVar[str] = "sentences"
    name: str
    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Listing:
    """Text as it is, such as a recipe."""

    kind: ClassVar[str] = "listing"
    name: str
    text: str


Part = Table | Curves | Intervals | Frontier | Heatmap | Sentences | Listing


@dataclass(frozen=True)
class Section:
    """A heading, a sentence on how to read what follows, the parts, and remarks to heed before believing them."""

    title: str
    note: str
    parts: Sequence[Part]
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Lead:
    """The top of a page: the result in a sentence, what it rests on, and what to heed before believing it."""

    sentence: str
    facts: Sequence[str] = ()
    remarks: Sequence[str] = ()


def plain(thing: Any) -> Any:
    """The same as lists and mappings, every part with its kind, ready for JSON."""
    if isinstance(thing, str | int | float | None):
        return thing
    if isinstance(thing, Mapping):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, Sequence):
        return [plain(value) for value in thing]
    own = {name: plain(getattr(thing, name)) for name in thing.__dataclass_fields__}
    return {"kind": thing.kind, **own} if isinstance(thing, Part) else own
