"""Tables that fit the terminal: if too wide, they are transposed or split into blocks, without breaking words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

NARROW = 8
"""The smallest width to wrap names to, in characters."""

JOINTS = re.compile(r"(?<=[/_=])")
TIE = "\u00a0"
TURNED = 4
"""The most rows of a table to transpose; longer ones are split into blocks."""


@dataclass(frozen=True)
class Column:
    """A column: its heading, in one or several lines, and the text of each cell."""

    heading: str
    cells: Sequence[str | Text]
    justify: Literal["left", "right", "center"] = "right"

    @property
    def width(self) -> int:
        """The length of the longest line, in characters."""
        return max(cell_len(line) for text in (self.heading, *self.cells) for line in str(text).split("\n"))


@dataclass(frozen=True)
class Grid:
    """A table that chooses its shape when it is printed.

    Attributes:
        title: The line above the table.
        keys: Columns that identify a row; the first holds its main name.
        values: The other columns.
        caption: Lines below the table.
        sections: Rows to separate from the row above by a line.
    """

    title: str
    keys: Sequence[Column]
    values: Sequence[Column]
    caption: Sequence[str] = ()
    sections: Sequence[int] = field(default=())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in the first shape that fits."""
        width = options.max_width
        if self.title:
            yield from _lines(self.title, width, "italic")
        for index, table in enumerate(self._fitting(width)):
            if index:
                yield ""
            yield table
        for line in self.caption:
            yield from _lines(line, width, "dim")

    def _fitting(self, width: int) -> list[Table]:
        columns = [*self.keys, *self.values]
        if _width(columns) <= width:
            return [self._table(columns)]
        label, *others = self._transposed()
        turned = [*_narrowed([label], width - _width(others) - 2), *others]
        if len(self.keys[0].cells) <= TURNED and _width(turned) <= width:
            return [_draw(turned)]
        return [self._table(block) for block in self._blocks(width)]

    def _table(self, columns: Sequence[Column]) -> Table:
        return _draw(columns, self.sections)

    def _transposed(self) -> list[Column]:
        """Return the table transposed, with the main names of the rows as headings."""
        name, *below = [*self.keys, *self.values]
        labels = Column("", [column.heading.replace("\n", " ") for column in below], "left")
        cells = [[column.cells[index] for column in below] for index in range(len(name.cells))]
        return [
            labels,
            *(
                Column(_wrapped(str(name.cells[index]), Column("", column_cells).width), column_cells)
                for index, column_cells in enumerate(cells)
            ),
        ]

    def _blocks(self, width: int) -> list[list[Column]]:
        """Split the table into several with the same keys, each with as many of the other columns as fit.

        Long names are wrapped if they leave no room for a value, or if that yields fewer tables.
        """
        widest = max((column.width for column in self.values), default=0)
        whole = _narrowed(self.keys, width - widest - 2)
        short = _narrowed(self.keys, width // 2)
        choices = [self._filled(keys, width) for keys in (whole, short)]
        return min(choices, key=len)

    def _filled(self, keys: Sequence[Column], width: int) -> list[list[Column]]:
        blocks: list[list[Column]] = [[]]
        for column in self.values:
            if blocks[-1] and _width([*keys, *blocks[-1], column]) > width:
                blocks.append([])
            blocks[-1].append(column)
        return [[*keys, *block] for block in blocks]


def _narrowed(columns: Sequence[Column], width: int) -> list[Column]:
    """Wrap names, starting with the widest column, until all columns fit or none can be narrower."""
    narrowed = list(columns)
    limits = [column.width for column in narrowed]
    while _width(narrowed) > width and max(limits) > NARROW:
        index = max(range(len(narrowed)), key=lambda number: limits[number])
        limits[index] = max(limits[index] - 1, NARROW)
        widest = columns[index]
        cells = [_wrapped(cell, limits[index]) if isinstance(cell, str) else cell for cell in widest.cells]
        narrowed[index] = Column(_wrapped(widest.heading, limits[index]), cells, widest.justify)
    return narrowed


def _width(columns: Sequence[Column]) -> int:
    """Return the width of a table drawn by `_draw`, with two spaces between columns."""
    return sum(column.width + 2 for column in columns) - 2


def _draw(columns: Sequence[Column], sections: Sequence[int] = ()) -> Table:
    headed = any(column.heading for column in columns)
    table = Table(
        box=box.SIMPLE_HEAD, show_header=headed, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in columns:
        table.add_column(Text(column.heading), justify=column.justify, no_wrap=True, overflow="ellipsis")
    for index, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if index in sections:
            table.add_section()
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
    return table


@dataclass(frozen=True)
class Sentence:
    """A sentence that wraps between words when printed, but never inside `83.6 % ± 1.2`."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the wrapped lines."""
        yield from _lines(self.text, options.max_width, "")


def _lines(text: str, width: int, style: str) -> list[Text]:
    """Wrap a title, caption or sentence to the width of the terminal."""
    return [
        Text(line, style=style, no_wrap=True, overflow="fold") for line in _wrapped(text, width).split("\n")
    ]


def _wrapped(text: str, width: int) -> str:
    """Wrap text to a width, between words, and inside longer words after `/`, `_` or `=`.

    A number stays together with its percent or times sign and with its ± part.
    """
    lines = []
    for line in (
        text.replace(" %", f"{TIE}%").replace(" ± ", f"{TIE}±{TIE}").replace(" × ", f"{TIE}× ").split("\n")
    ):
        current = ""
        for word in line.split(" "):
            pieces = [word] if cell_len(word) <= width else JOINTS.split(word)
            for index, piece in enumerate(pieces):
                longer = f"{current} {piece}" if current and index == 0 else current + piece
                if current and cell_len(longer) > width:
                    lines.append(current)
                    longer = piece
                current = longer
        lines.append(current)
    return "\n".join(lines).replace(TIE, " ")
