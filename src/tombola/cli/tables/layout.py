"""Tables that fit the terminal: turned round or cut into blocks where they are too wide, but no word is broken."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

TURNED = 4
"""Rows beyond which a table is cut into blocks rather than turned round."""


@dataclass(frozen=True)
class Column:
    """A column: its heading, in one or several lines, and the text of each cell."""

    heading: str
    cells: Sequence[str | Text]
    justify: Literal["left", "right", "center"] = "right"

    @property
    def width(self) -> int:
        """The characters of its longest line."""
        return max(cell_len(line) for text in (self.heading, *self.cells) for line in str(text).split("\n"))


@dataclass(frozen=True)
class Grid:
    """A table that chooses its shape when it is printed.

    Attributes:
        title: Above the table.
        keys: Columns that name a row, the first its main name.
        values: The other columns.
        caption: Lines below the table.
        sections: Rows before which a line is drawn.
    """

    title: str
    keys: Sequence[Column]
    values: Sequence[Column]
    caption: Sequence[str] = ()
    sections: Sequence[int] = field(default=())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table in the first shape that fits."""
        if self.title:
            yield Text(self.title, style="italic")
        for index, table in enumerate(self._fitting(options.max_width)):
            if index:
                yield ""
            yield table
        for line in self.caption:
            yield Text(line, style="dim")

    def _fitting(self, width: int) -> list[Table]:
        columns = [*self.keys, *self.values]
        if _width(columns) <= width:
            return [self._table(columns)]
        turned = self._turned()
        if len(self.keys[0].cells) <= TURNED and _width(turned) <= width:
            return [_draw(turned)]
        return [self._table(block) for block in self._blocks(width)]

    def _table(self, columns: Sequence[Column]) -> Table:
        return _draw(columns, self.sections)

    def _turned(self) -> list[Column]:
        """Rows as columns: the main name of each on top, everything else below."""
        name, *below = [*self.keys, *self.values]
        labels = Column("", [one.heading.replace("\n", " ") for one in below], "left")
        cells = [[one.cells[index] for one in below] for index in range(len(name.cells))]
        return [
            labels,
            *(
                Column(_wrapped(str(name.cells[index]), Column("", own).width), own)
                for index, own in enumerate(cells)
            ),
        ]

    def _blocks(self, width: int) -> list[list[Column]]:
        """Several tables with the same keys, each with as many of the other columns as fit."""
        keys = self._narrowed(width)
        blocks: list[list[Column]] = [[]]
        for column in self.values:
            if blocks[-1] and _width([*keys, *blocks[-1], column]) > width:
                blocks.append([])
            blocks[-1].append(column)
        return [[*keys, *block] for block in blocks]

    def _narrowed(self, width: int) -> list[Column]:
        """The keys, with long names wrapped between words where they leave no room for a value."""
        widest = max((column.width for column in self.values), default=0)
        keys = list(self.keys)
        spare = width - _width([*keys, Column("", ["x" * widest])])
        if spare < 0:
            index = max(range(len(keys)), key=lambda number: keys[number].width)
            limit = max(keys[index].width + spare, 8)
            wrapped = [_wrapped(str(cell), limit) for cell in keys[index].cells]
            keys[index] = Column(_wrapped(keys[index].heading, limit), wrapped, keys[index].justify)
        return keys


def _width(columns: Sequence[Column]) -> int:
    """Characters of a table as `_draw` draws it: two spaces between columns."""
    return sum(column.width + 2 for column in columns) - 2


def _draw(columns: Sequence[Column], sections: Sequence[int] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(Text(column.heading), justify=column.justify, no_wrap=True, overflow="ellipsis")
    for index, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if index in sections:
            table.add_section()
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))
    return table


def _wrapped(text: str, width: int) -> str:
    """Text in lines of that width, broken between words alone."""
    lines = text.split("\n")
    return "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(line, max(width, 1), break_long_words=False, break_on_hyphens=False)
    )
