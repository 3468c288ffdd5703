"""Read the columns of a data file, and those of the other splits' files next to it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tombola.errors import DataError
from tombola.tasks.column_roles import is_empty
from tombola.tasks.data_files import splits_beside
from tombola.tasks.definition import Layout
from tombola.tasks.lines import ending_of, recognised_encoding
from tombola.tasks.parse import most_dropped
from tombola.tasks.readers import Malformed, open_table, recognised_delimiter, recognised_quotes


def layout_of(data: Path) -> Layout:
    """Return the encoding, the delimiter and the quoting of a file, if unusual."""
    if ending_of(data) == ".parquet":
        return Layout()
    layout = Layout(encoding=recognised_encoding(data))
    layout = layout.model_copy(update={"delimiter": recognised_delimiter(data, layout)})
    return layout.model_copy(update={"quoted": recognised_quotes(data, layout)})


def columns_of(data: Path, layout: Layout) -> tuple[dict[str, list[Any]], list[str]]:
    """Return the values of every column, and notes on anything unusual in the file."""
    table = open_table(data, layout)
    rows, bad = [], []
    for number, fields in table.rows:
        if isinstance(fields, Malformed):
            bad.append(f"{table.where(number)}: {fields.reason}")
        else:
            rows.append(fields)
    if not rows:
        raise DataError(
            f"{bad[0]}; no other row can be read either." if bad else f"{data}: contains no rows."
        )
    notes = [f"{name}: {value!r}" for name, value in layout.model_dump(exclude_defaults=True).items()]
    if bad:
        count = f"{len(bad):,} rows cannot be read, the first" if len(bad) > 1 else "1 row cannot be read,"
        few = len(bad) <= most_dropped(len(rows) + len(bad))
        notes.append(f"{count} at {bad[0]}{'; or add `drop_malformed: true` under source' if few else ''}")
    if twice := [name for name, count in Counter(table.columns).items() if count > 1]:
        raise DataError(f"{data}: several columns are called {twice[0]!r}: rename all but one.")
    return {name: [row[place] for row in rows] for place, name in enumerate(table.columns)}, notes


def other_splits(
    data: Path, layout: Layout, used: tuple[str, ...]
) -> tuple[dict[str, tuple[Path, list[str]]], list[str]]:
    """Return the labelled files of the other splits next to a training file, with their labels, and notes."""
    found, notes = {}, []
    for split, file in splits_beside(data).items():
        columns, unusual = columns_of(file, layout)
        lacking = [name for name in used if all(map(is_empty, columns.get(name, ())))]
        if lacking:
            notes.append(f"{file.name}: not used, since it has no {lacking[0]}")
        else:
            found[split] = file, answers_of(columns, used)
            notes += [note for note in unusual if file.name in note]
    return found, notes


def answers_of(columns: dict[str, list[Any]], used: tuple[str, ...]) -> list[str]:
    """Return the labels, the last of these columns, of the rows in which none of them is empty."""
    rows = zip(*(columns[name] for name in used), strict=True)
    return [str(row[-1]).strip() for row in rows if not any(map(is_empty, row))]
