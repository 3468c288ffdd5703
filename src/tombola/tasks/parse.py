"""Parse rows into examples, checking texts, targets and ids, and locate the first invalid row."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.kinds import kind_of
from tombola.tasks.readers import BadRow, Fields, Malformed, Table
from tombola.tasks.rows import Columns, SkippedRow

if TYPE_CHECKING:
    from tombola.tasks.task import Task

logger = logging.getLogger(__name__)

MOST_DROPPED = 0.01  # more malformed rows mean a wrong layout, not a few bad rows


@dataclass
class Examples:
    """The content of a file or hub split, by column."""

    ids: list[str] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    dropped: int = 0


def parse(task: "Task", layout: Layout, table: Table, labelled: bool = True) -> Examples:
    """Parse the table's examples. An invalid row raises DataError, or is counted if the layout drops it.

    With `labelled` false, label columns are ignored, and every row is an example.
    """
    kind, columns = kind_of(task), Columns(layout, table, allow_empty=not labelled)
    read = kind.reader(task, columns, labelled)
    kept = {column: columns.value(column) for column in task.keep} if labelled else {}
    for column in (column for group in task.grouped for column in group if column != "label"):
        if labelled and columns.has(column):
            kept[column] = columns.value(column)
    name = columns.value("id") if not layout.numbered and columns.has("id") else None

    examples = Examples(columns={column: [] for column in kept})
    lines: dict[str, int] = {}
    first_drop = ""
    rows = -1
    for rows, (line, fields) in enumerate(kind.rows(task, columns).rows):
        try:
            values = _values(fields)
            texts, target = read(values)
            identity = str(rows) if name is None else str(name(values))
            if identity in lines:
                raise BadRow(
                    f"id {identity!r} also occurs at {table.where(lines[identity])}: correct it, or set "
                    "`source.numbered: true` in the task file"
                )
        except SkippedRow:
            continue
        except BadRow as bad:
            problem = f"{table.where(line)}: {bad}"
            if not layout.drop_malformed:
                raise DataError(f"{problem}.") from None
            first_drop = first_drop or problem
            examples.dropped += 1
            continue
        lines[identity] = line
        examples.ids.append(identity)
        examples.texts.append(texts)
        examples.labels.append(target)
        for column, value in kept.items():
            examples.columns[column].append(value(values))

    if examples.dropped > most_dropped(rows + 1):
        raise DataError(
            f"{examples.dropped} of {rows + 1} rows are malformed, which is too many to drop; {first_drop}."
        )
    if not examples.ids:
        raise DataError(f"{table.where(1)}: contains no rows.")
    if examples.dropped:
        logger.warning(
            "%s: %d malformed rows skipped, the first: %s", task.name, examples.dropped, first_drop
        )
    return examples


def most_dropped(rows: int) -> float:
    """Return how many of so many rows `drop_malformed` drops at most."""
    return max(1, MOST_DROPPED * rows)


def _values(fields: Fields) -> list[Any]:
    if isinstance(fields, Malformed):
        raise BadRow(fields.reason)
    return fields
