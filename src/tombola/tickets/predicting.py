"""Read files of texts without labels in a task's layout, and write them with a model's predictions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Any, Literal

from tombola.errors import DataError
from tombola.evaluation.evaluators import Prediction
from tombola.tasks import Split, Task
from tombola.tasks.lines import encoding_of_new, ending_of, marked_encoding, numbered_lines
from tombola.tasks.places import open_unlabelled
from tombola.tasks.readers import DELIMITERS, DoesNotFit

Form = Literal["csv", "tsv", "jsonl", "txt"]
PREDICTION, PROBABILITY, PROBABILITIES = "prediction", "probability_", "probabilities"
NEW_LINES = ("\n", "\r")
DIGITS = 6
"""The decimals of probabilities."""


@dataclass(frozen=True)
class TextFile:
    """The rows of a file, both unchanged and as examples of a task.

    Attributes:
        split: The examples, in the order of the rows.
        rows: The values of each row, by column.
        form: The format of the file.
    """

    split: Split
    rows: list[dict[str, Any]]
    form: Form

    @classmethod
    def read(cls, path: Path, task: Task) -> TextFile:
        """Read a file with the task's columns, or in one of its layouts; labels are optional.

        Args:
            path: The file.
            task: The task of the texts.
        """
        if not path.exists() and " " in path.name:
            raise DataError(
                f"{path}: there is no such file; to predict a text, pass it as standard input: "
                f"`echo {quote(str(path))} | tombola predict MODEL -`."
            )
        try:
            opened, table = open_unlabelled(_as_named(task), path)
        except DoesNotFit as error:
            if ending_of(path) != ".txt":
                raise
            raise DataError(
                f"{error} If the file has one text per line, pass it as standard input: `tombola predict MODEL - < "
                f"{quote(str(path))}`."
            ) from None
        split = Split(task, "unlabelled", opened.texts, opened.labels, opened.ids, str(path))
        ending = ending_of(path)
        if ending == ".jsonl":  # whole objects: their keys may differ
            encoding = encoding_of_new(path, task.source.encoding)
            rows = [json.loads(line) for _, line in numbered_lines(path, encoding)]
        else:
            rows = [dict(zip(table.columns, fields, strict=True)) for _, fields in table.rows]
        form: Form = "csv" if ending == ".csv" else "tsv" if ending in (".tsv", ".txt") else "jsonl"
        return cls(split, rows, form)

    @classmethod
    def of(cls, content: bytes, task: Task, form: Form | None) -> TextFile:
        """Read the content of standard input.

        Args:
            content: The bytes.
            task: The task of the texts.
            form: The format; by default guessed from the first line. `txt` is one text per line, without a header.
        """
        if not content.strip():
            raise DataError("standard input: there is nothing to predict.")
        shown = content.decode(marked_encoding(io.BytesIO(content)) or "utf-8", "replace")
        form = form or _guess(shown.split("\n", 1)[0].strip(), task)
        if form == "txt" and len(task.text) > 1:
            raise DataError(
                f"{task.name} reads {', '.join(task.text)}: provide them as columns of CSV, TSV or JSON lines."
            )
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"INPUT.{form}"
            path.write_bytes(content)
            try:
                read = cls.read(_as_json_lines(path, task) if form == "txt" else path, task)
            except DataError as error:
                raise DataError(str(error).replace(str(path), "standard input")) from None
        return cls(read.split, read.rows, form)

    def check(self, form: Form) -> None:
        """Raise an error if the rows cannot be written with predictions; call it before the work.

        Args:
            form: The format: csv, tsv or jsonl.
        """
        columns = {PREDICTION, PROBABILITIES} | {
            f"{PROBABILITY}{name}" for name in self.split.task.labels or ()
        }
        if clash := sorted(columns & {name for row in self.rows for name in row}):
            raise DataError(f"{self.split.source}: it already has a column {clash[0]!r}: rename that first.")
        if form == "tsv":
            _delimited(self.rows, "\t")

    def with_predictions(self, predictions: Iterable[Prediction], form: Form) -> str:
        """Return the rows with labels and probabilities, as the text of a file.

        Args:
            predictions: One for each row, in order.
            form: The format: csv, tsv or jsonl.
        """
        if form == "jsonl":
            records = (
                row | _nested(prediction) for row, prediction in zip(self.rows, predictions, strict=True)
            )
            return "".join(json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records)
        flat = [row | _flat(prediction) for row, prediction in zip(self.rows, predictions, strict=True)]
        return _delimited(flat, "," if form == "csv" else "\t")


def form_of(path: Path) -> Form:
    """Return the format of an output file, by its extension.

    Args:
        path: The file.
    """
    ending = path.suffix.lower()
    if ending not in (".csv", ".tsv", ".jsonl"):
        raise DataError(f"{path}: predictions are written as .csv, .tsv or .jsonl: use one of these endings.")
    forms: dict[str, Form] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}
    return forms[ending]


def _guess(first: str, task: Task) -> Form:
    """Guess the format from the first line: plain text if it names no column of the task."""
    if first.startswith("{"):
        return "jsonl"
    form: Form = "tsv" if "\t" in first else "csv"
    fields = {field.strip().strip('"') for mark in DELIMITERS for field in first.split(mark)}
    columns = {name for layout in task.source.layouts for name in layout.map.get(task.text[0], [])}
    if len(task.text) == 1 and not fields & {*task.text, *columns}:
        return "txt"
    return form


def _as_json_lines(path: Path, task: Task) -> Path:
    """Return a file of JSON lines with the lines of a text file, without blank ones."""
    texts = [line.strip() for _, line in numbered_lines(path) if line]
    rows = path.with_suffix(".jsonl")
    content = "".join(json.dumps({task.text[0]: text}) + "\n" for text in texts)
    rows.write_text(content, encoding=task.source.encoding or "utf-8")
    return rows


def _as_named(task: Task) -> Task:
    """Return the task with an extra layout, in which columns have the task's own names.

    Layouts that name the columns of the texts come first: the data may also have a column with one of the task's names.
    """
    plain = task.source.model_copy(update={"map": {}, "header": None, "alternatives": []})
    layouts = task.source.layouts
    named = [
        layout
        for layout in layouts
        if layout.header is None and any(name in layout.map for name in task.text)
    ]
    ordered = [*named, plain, *(layout for layout in layouts if layout not in named)]
    source = task.source.model_copy(update={**dict(ordered[0]), "alternatives": ordered[1:]})
    return task.model_copy(update={"source": source})


def _nested(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as values of a JSON object, with no more digits than the model computes."""
    label, chances = prediction.label, prediction.probabilities
    record: dict[str, Any] = {PREDICTION: float(f"{label:.7g}") if isinstance(label, float) else label}
    if chances:
        record[PROBABILITIES] = (
            _rounded(chances) if isinstance(chances, Mapping) else [_rounded(word) for word in chances]
        )
    return record


def _rounded(chances: Mapping[str, float]) -> dict[str, float]:
    return {name: round(chance, DIGITS) for name, chance in chances.items()}


def _flat(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as columns; several labels go into one column, and so do the probabilities of tags."""
    record = _nested(prediction)
    label, chances = record[PREDICTION], record.get(PROBABILITIES, {})
    if not isinstance(chances, Mapping):
        return {PREDICTION: " ".join(label), PROBABILITIES: json.dumps(chances)}
    value = ",".join(label) if isinstance(label, tuple) else label
    return {
        PREDICTION: value,
        **{f"{PROBABILITY}{name}": f"{chance:.{DIGITS}f}" for name, chance in chances.items()},
    }


def _delimited(rows: list[dict[str, Any]], delimiter: str) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = [[_field(row.get(name)) for name in columns] for row in rows]
    if delimiter == ",":
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([columns, *table])
        return stream.getvalue()
    if any(mark in field for fields in table for field in fields for mark in ("\t", *NEW_LINES)):
        raise DataError(
            "a text contains a tab or a line break, which .tsv does not support: write .csv or .jsonl."
        )
    return "".join("\t".join(fields) + "\n" for fields in [columns, *table])


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)  # a date of a Parquet file, say
