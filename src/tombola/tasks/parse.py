"""Rows to examples: texts, labels and ids, each checked, with the place of the first row that is wrong."""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.questions import read_answers
from tombola.tasks.readers import BadRow, DoesNotFit, Fields, Malformed, Table

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


def parse(task: "Task", layout: Layout, table: Table) -> Examples:
    """The table's examples. A row that does not parse raises DataError, or is counted where the layout drops it."""
    texts = [_positions(column, layout, table) for column in task.text]
    read_target = _target_reader(task, layout, table)
    kept = {column: _positions(column, layout, table) for column in task.keep}
    for column in (column for group in task.grouped for column in group if column != "label"):
        if set(layout.map.get(column, [column])) <= set(table.columns):
            kept[column] = _positions(column, layout, table)
    named = not layout.numbered and ("id" in layout.map or "id" in table.columns)
    name = _positions("id", layout, table) if named else None

    found = Examples(columns={column: [] for column in kept})
    seen: dict[str, int] = {}
    first_drop = ""
    rows = -1
    for rows, (line, fields) in enumerate(table.rows):
        try:
            values = _values(fields)
            example = tuple(_text(column, values, at) for column, at in zip(task.text, texts, strict=True))
            if task.kind != "question-answering":  # answers are counted in characters of the whole text
                example = tuple(text.strip() for text in example)
            target = read_target(values, example)
            identity = str(rows) if name is None else str(_value(values, name))
            if identity in seen:
                raise BadRow(f"id {identity!r} also stands at {table.where(seen[identity])}")
        except BadRow as bad:
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
        raise BadRow(fields.reason)
    return fields


def _value(values: list[Any], at: list[int]) -> Any:
    return values[at[0]] if len(at) == 1 else " ".join(str(values[index]) for index in at)


def _text(column: str, values: list[Any], at: list[int]) -> str:
    value = _value(values, at)
    if not isinstance(value, str):
        raise BadRow(
            f"no text in column {column!r}" if value is None else f"column {column!r} is not text: {value!r}"
        )
    if not value.strip():
        raise BadRow(f"empty text in column {column!r}")
    return value


def _target_reader(task: "Task", layout: Layout, table: Table) -> Callable[[list[Any], tuple[str, ...]], Any]:
    """What finds an example's label, answers or nothing in its row, given its texts."""
    if task.kind == "masked-lm":
        return lambda values, texts: None
    at = _positions("answers" if task.kind == "question-answering" else "label", layout, table)
    if task.kind == "question-answering":
        return lambda values, texts: read_answers(_value(values, at), texts[1], task.unanswerable)
    read = _label_reader(task, layout)
    return lambda values, texts: read(_value(values, at))


def _label_reader(task: "Task", layout: Layout) -> Callable[[Any], int | float]:
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
            raise BadRow(f"unknown label {raw!r}; expected one of {expected}")
        return number

    return read


def _number(raw: Any) -> float:
    try:
        number = float(raw)
    except (TypeError, ValueError):
        raise BadRow(f"label {raw!r} is not a number") from None
    if not math.isfinite(number):
        raise BadRow(f"label {raw!r} is not a finite number")
    return number
