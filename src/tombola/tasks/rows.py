"""Map a table's columns to the task's names, and check the values of a row."""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tombola.tasks.column_roles import is_empty
from tombola.tasks.definition import Layout
from tombola.tasks.readers import BadRow, DoesNotFit, Table

Read = Callable[[list[Any]], Any]


class SkippedRow(Exception):
    """The layout excludes this row."""


@dataclass(frozen=True)
class Columns:
    """Finds the task's columns in a table with a given layout."""

    layout: Layout
    table: Table
    allow_empty: bool = False
    """Whether a text may be empty: every row of a test set needs a prediction."""

    def has(self, column: str) -> bool:
        """Return whether the table has one of the task's columns."""
        return set(self.layout.map.get(column, [column])) <= set(self.table.columns)

    def value(self, column: str) -> Read:
        """Return a function that reads a task column from a row; several file columns are joined by a space.

        Empty ones are left out.
        """
        wanted = self.layout.map.get(column, [column])
        lacking = [name for name in wanted if name not in self.table.columns]
        if lacking:
            raise DoesNotFit(
                f"{self.table.where(1)}: no column {lacking[0]!r}; the columns are "
                f"{', '.join(map(repr, self.table.columns))}. Rename it in the file, or map it with `map` in the "
                "task file."
            )
        places = [self.table.columns.index(name) for name in wanted]
        if len(places) == 1:
            (place,) = places
            return lambda values: values[place]
        return lambda values: " ".join(str(values[place]) for place in places if not is_empty(values[place]))

    def text(self, column: str) -> Callable[[list[Any]], str]:
        """Return a function that reads a text column."""
        read = self.value(column)

        def text(values: list[Any]) -> str:
            value = read(values)
            empty = value is None or (isinstance(value, str) and not value.strip())
            if empty and self.allow_empty:
                return ""
            if empty and self.layout.skip_empty:
                raise SkippedRow
            if value is None:
                raise BadRow(f"no text in column {column!r}")
            if not isinstance(value, str):
                raise BadRow(
                    f"column {column!r} is not text: {reprlib.repr(value)}; write it as text, or use another column"
                )
            if empty:
                raise BadRow(
                    f"empty text in column {column!r}: fill it in, remove the row, or skip such rows with "
                    "`source.skip_empty: true` in the task file"
                )
            return value

        return text
