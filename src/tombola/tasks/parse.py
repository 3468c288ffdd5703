"""Rows to examples: texts, labels and ids, each checked, with the place of the first row that is wrong."""

import logging
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.readers import DoesNotFit, Fields, Malformed, Table

if TYPE_CHECKING:
    from tombola.tasks.task import Task

logger = logging.getLogger(__name__)

MOST_DROPPED = 0.01  # a larger share of malformed rows means a wrong layout, not a few bad rows


@dataclass
class Examples:
    """What a file or hub split holds, column by column."""

    ids: list[str] = field(default_factory=list)
    texts: list[tuple[str, ...]] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(default_factory=dict)
    dropped: int = 0


class _BadRow(Exception):
    """This row cannot become an example; the reason is its message."""


def parse(task: "Task", layout: Layout, table: Table) -> Examples:
    """The table's examples. A row that does not parse raises DataError, or is counted where the layout drops it."""
    texts = [_positions(column, layout, table) for column in task.text]
    label = _positions("label", layout, table)
    kept = {column: _positions(column, layout, table) for column in task.keep}
    name = _positions("id", layout, table) if "id" in layout.map or "id" in table.columns else None
    read_label = _label_reader(task, layout)

    found = Examples(columns={column: [] for column in kept})
    seen: dict[str, int] = {}
    first_drop = ""
    rows = -1
    for rows, (line, fields) in enumerate(table.rows):
        try:
            values = _values(fields)
            example = tuple(_text(column, values, at) for column, at in zip(task.text, texts, strict=True))
            target = read_label(_value(values, label))
            identity = str(rows) if name is None else str(_value(values, name))
            if identity in seen:
                raise _BadRow(f"id {identity!r} also stands at {table.where(seen[identity])}")
        except _BadRow as bad:
            problem = f"{table.where(line)}: {bad}"
            if not layout.drop_malformed:
                raise DataError(f"{problem}.") from None
            first_drop = first_drop or problem
            found.dropped += 1
            continue
        seen[identity] = line
        found.ids.append(identity)
        found.texts.append(example)
        found.labels.append(target)
        for column, at in kept.items():
            found.columns[column].append(_value(values, at))

    if found.dropped > max(1, MOST_DROPPED * (rows + 1)):
        raise DataError(
            f"{found.dropped} of {rows + 1} rows do not parse, which is too many to drop; {first_drop}."
        )
    if not found.ids:
        raise DataError(f"{table.where(1)}: there is not a single row.")
    if found.dropped:
        logger.warning("%s: %d malformed rows left out, the first: %s", task.name, found.dropped, first_drop)
    return found


def _positions(column: str, layout: Layout, table: Table) -> list[int]:
    wanted = layout.map.get(column, [column])
    lacking = [name for name in wanted if name not in table.columns]
    if lacking:
        raise DoesNotFit(
            f"{table.where(1)}: no column {lacking[0]!r}; the columns are {', '.join(map(repr, table.columns))}."
        )
    return [table.columns.index(name) for name in wanted]


def _values(fields: Fields) -> list[Any]:
    if isinstance(fields, Malformed):
        raise _BadRow(fields.reason)
    return fields


def _value(values: list[Any], at: list[int]) -> Any:
    return values[at[0]] if len(at) == 1 else " ".join(str(values[index]) for index in at)


def _text(column: str, values: list[Any], at: list[int]) -> str:
    value = _value(values, at)
    if not isinstance(value, str):
        raise _BadRow(
            f"no text in column {column!r}" if value is None else f"column {column!r} is not text: {value!r}"
        )
    text = value.strip()
    if not text:
        raise _BadRow(f"empty text in column {column!r}")
    return text


def _label_reader(task: "Task", layout: Layout) -> Any:
    """Raw label -> number. `values` where the layout has them, else a label's name or its number."""
    if task.labels is None:
        return _number
    index = {name: number for number, name in enumerate(task.labels)}
    known = {raw: index[name] for raw, name in layout.values.items()}
    known |= index if layout.values else {str(number): number for number in index.values()} | index
    expected = ", ".join(layout.values or task.labels)

    def read(raw: Any) -> int:
        number = known.get(str(raw).strip())
        if number is None:
            if str(raw).strip() == "-1":
                raise DataError(
                    f"This split of {task.name!r} is unlabelled (its labels are -1, as in public test sets): "
                    "use another split."
                )
            raise _BadRow(f"unknown label {raw!r}; expected one of {expected}")
        return number

    return read


def _number(raw: Any) -> float:
    try:
        number = float(raw)
    except (TypeError, ValueError):
        raise _BadRow(f"label {raw!r} is not a number") from None
    if not math.isfinite(number):
        raise _BadRow(f"label {raw!r} is not a finite number")
    return number
