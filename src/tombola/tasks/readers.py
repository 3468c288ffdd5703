"""Read rows from the formats of published data sets: tsv, csv, json lines, json, Parquet, label folders."""

import csv
import json
import math
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.lines import ending_of, numbered_lines, read_text

LONGEST_FIELD = 2**31 - 1  # characters; whole documents exceed the csv module's default of 131,072
FIRST_RECORDS = 1000  # of a JSON file, whose keys are its columns
EMPTY_LINE = "empty line: remove it"
DELIMITERS = (",", ";", "\t", "|")
USUAL = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
"""The default delimiters, unless a file's first lines show otherwise."""


class Malformed(NamedTuple):
    """A row that could not be parsed, and why."""

    reason: str


Fields = list[Any] | Malformed


class BadRow(Exception):
    """The row is not a valid example; the message says why."""


class Table(NamedTuple):
    """Named columns and numbered rows; `where` turns a row number into a readable location."""

    columns: list[str]
    rows: Iterator[tuple[int, Fields]]
    where: Callable[[int], str]


class DoesNotFit(DataError):
    """The file exists but does not match this layout; another layout may fit."""


def open_table(path: Path, layout: Layout) -> Table:
    """Open a file's (or label folder's) columns and rows. Rows of the wrong length become `Malformed`."""
    ending = ending_of(path)
    if path.is_dir():
        if not layout.values:
            raise DataError(f"{path}: is a folder; name a file in it.")
        return Table(["id", "text", "label"], _label_folders(path, layout), lambda _: str(path))
    if ending == ".parquet":
        return _parquet_table(path)
    if ending not in (".tsv", ".txt", ".csv", ".json", ".jsonl"):
        raise DataError(
            f"{path}: cannot read {ending!r} files; use .tsv, .csv, .jsonl or .json (also with .gz), or .parquet."
        )
    if ending == ".jsonl":
        return json_table(path, _json_lines(path, layout.encoding))
    if ending == ".json":
        return json_table(path, _json_list(path, layout))
    delimiter = layout.delimiter or recognised_delimiter(path, layout) or USUAL[ending]
    quoted = ending == ".csv" if layout.quoted is None else layout.quoted
    rows = (_quoted_rows if quoted else _plain_rows)(path, delimiter, layout.encoding)
    return _delimited_table(path, rows, layout.header, quoted)


def recognised_delimiter(path: Path, layout: Layout) -> str | None:
    """Return the delimiter of a file, if its first lines clearly show that it is not the suffix's default.

    Args:
        path: The file.
        layout: Its encoding, and its columns if the file does not name them.
    """
    usual = USUAL.get(ending_of(path))
    if usual is None:
        return None
    lines = [line for _, (_, line) in zip(range(2), numbered_lines(path, layout.encoding), strict=False)]
    widths = {delimiter: [len(line.split(delimiter)) for line in lines] for delimiter in DELIMITERS}
    wanted = len(layout.header) if layout.header else None
    if not lines or (usual in lines[0] if wanted is None else widths[usual][0] == wanted):
        return None
    fitting = [
        delimiter
        for delimiter, counts in widths.items()
        if counts[0] > 1 and (counts[0] == wanted if wanted else len(set(counts)) == 1)
    ]
    if len(fitting) != 1 and wanted is None:  # texts may contain delimiters, column names do not
        fitting = [delimiter for delimiter, counts in widths.items() if counts[0] > 1]
    return fitting[0] if len(fitting) == 1 else None


def recognised_quotes(path: Path, layout: Layout) -> bool | None:
    """Return True for a file that is not quoted by default, but clearly is; None if the default holds.

    Quotes are CSV's if they match up everywhere and make all rows equally long, and without them rows would differ in
    length, quotes would be doubled, or every cell of a column would have them.

    Args:
        path: The file.
        layout: Its encoding and delimiter.
    """
    ending = ending_of(path)
    if ending not in (".tsv", ".txt"):
        return None
    delimiter = layout.delimiter or USUAL[ending]
    plain = [fields for _, fields in _plain_rows(path, delimiter, layout.encoding)]
    if not any(field.startswith('"') for fields in plain for field in fields):
        return None
    try:
        widths = {len(fields) for _, fields in _quoted_rows(path, delimiter, layout.encoding)}
    except DataError:
        return None
    doubled = any(_quoted(field) and '""' in field[1:-1] for fields in plain for field in fields)
    even = len({len(fields) for fields in plain}) == 1
    whole = even and any(all(map(_quoted, column)) for column in zip(*plain[1:], strict=True))
    return True if len(widths) == 1 and (not even or doubled or whole) else None


def _quoted(field: str) -> bool:
    return len(field) > 1 and field[0] == field[-1] == '"'


def _plain_rows(path: Path, delimiter: str, encoding: str | None) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split(delimiter)) for number, line in numbered_lines(path, encoding))


def _quoted_rows(path: Path, delimiter: str, encoding: str | None) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_FIELD)
    lines = (line + "\n" for _, line in numbered_lines(path, encoding))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 1
    try:
        for fields in reader:
            yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        if "new-line character" in str(error):
            raise DataError(
                f"{path}:{start}: contains a carriage return that is not in quotes: quote the text, or, if all lines "
                "end so, save the file with Unix or Windows line ends."
            ) from None
        raise DataError(
            f"{path}:{start}: the row's quotes do not match up ({error}): double the quotes inside a quoted field, or "
            "set `source.quoted: false` in the task file if quotes are text."
        ) from None


def _delimited_table(
    path: Path, rows: Iterator[tuple[int, list[str]]], header: list[str] | None, quoted: bool
) -> Table:
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path}: the file is empty.")
    if first[1] and first[1][0].startswith("sep="):
        raise DataError(f"{path}:{first[0]}: the first line only tells Excel the delimiter: remove it.")
    columns = [name.strip() for name in first[1]] if header is None else header
    if header is not None:
        if len(first[1]) != len(header):
            raise DoesNotFit(f"{path}:{first[0]}: {_expected(first[1], header, quoted)}.")
        rows = chain([first], rows)
    width = len(columns)
    checked = (
        (number, fields if len(fields) == width else Malformed(_expected(fields, columns, quoted)))
        for number, fields in rows
    )
    return Table(columns, checked, lambda line: f"{path}:{line}")


def _expected(fields: list[str], columns: list[str], quoted: bool) -> str:
    if fields in ([], [""]):
        return EMPTY_LINE
    count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
    remedy = "fill in what is missing, or remove the row"
    if len(fields) > len(columns):
        remedy = "put texts that contain the delimiter in quotes" + (
            "" if quoted else " and set `source.quoted: true` in the task file"
        )
    return f"{count} instead of {len(columns)} ({', '.join(columns)}): {remedy}"


def _json_lines(path: Path, encoding: str | None) -> Iterator[tuple[int, Any]]:
    for number, line in numbered_lines(path, encoding):
        try:
            yield number, json.loads(line, parse_constant=_constant)
        except (ValueError, RecursionError) as error:
            yield number, Malformed(f"not JSON ({_problem(error)})" if line else EMPTY_LINE)


def read_json(path: Path, encoding: str | None = None) -> Any:
    """Return the content of a JSON file."""
    try:
        text = "\n".join(line for _, line in numbered_lines(path, encoding))
        return json.loads(text, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON ({error.msg}).") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({_problem(error)}).") from None


def _constant(name: str) -> float | None:
    """Return the value of NaN or Infinity in a JSON text; NaN is how Python and pandas write an empty cell."""
    return None if name == "NaN" else float(name)


def _problem(error: Exception) -> str:
    """Describe the problem of a JSON text in a few words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else "a number with too many digits"


def _json_list(path: Path, layout: Layout) -> Iterator[tuple[int, Any]]:
    records = read_json(path, layout.encoding)
    if layout.records is not None:
        if not isinstance(records, dict) or layout.records not in records:
            raise DataError(f"{path}: expected a JSON object with the key {layout.records!r}.")
        records = records[layout.records]
    if not isinstance(records, list):
        raise DataError(
            f"{path}: expected a JSON list of objects; if the list is under a key, set `source.records` to it in the "
            "task file."
        )
    return enumerate(records, start=1)


def json_table(path: Path, records: Iterator[tuple[int, Any]]) -> Table:
    """Return numbered JSON objects as a table; its columns are the keys of the first records, which may lack some."""
    place = "record " if ending_of(path) == ".json" else ""
    start = list(islice(records, FIRST_RECORDS))
    if not start:
        raise DataError(f"{path}: the file is empty.")
    number, first = start[0]
    if not isinstance(first, dict):
        reason = first.reason if isinstance(first, Malformed) else "not a JSON object"
        raise DataError(f"{path}:{place}{number}: {reason}.")
    columns = list(dict.fromkeys(key for _, record in start if isinstance(record, dict) for key in record))

    def rows() -> Iterator[tuple[int, Fields]]:
        for number, record in chain(start, records):
            if isinstance(record, Malformed):
                yield number, record
            elif not isinstance(record, dict):
                yield number, Malformed("not a JSON object")
            elif problem := half_character(record):
                yield number, Malformed(problem)
            else:
                yield number, [record.get(name) for name in columns]

    return Table(columns, rows(), lambda line: f"{path}:{place}{line}")


def half_character(value: Any) -> str | None:
    """Explain that a value contains a surrogate without its other half, if so: it has no encoding, and no tokens."""
    if isinstance(value, dict | list | tuple):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return next(filter(None, map(half_character, parts)), None)
    try:
        if isinstance(value, str):
            value.encode()
    except UnicodeEncodeError as error:
        half = value[error.start]
        return (
            f"contains half of a character ({half!r}), as in a text that was cut inside an emoji: remove it"
        )
    return None


def _parquet_table(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{path}: Parquet files need pyarrow: pip install 'tombola[frames]'.") from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(
            f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})."
        ) from None
    columns = table.column_names
    rows = enumerate(zip(*(table[name].to_pylist() for name in columns), strict=True), start=1)
    cells = ((number, [None if _is_nan(value) else value for value in row]) for number, row in rows)
    return Table(columns, cells, lambda row: f"{path}:row {row}")


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _label_folders(path: Path, layout: Layout) -> Iterator[tuple[int, Fields]]:
    """Yield `<split>/<label>/<name>.txt`, one text per file, for the labels in `values` (IMDB also has `unsup`)."""
    files = sorted(file for file in path.glob("*/*.txt") if file.parent.name in layout.values)
    for number, file in enumerate(files, start=1):
        text = read_text(file, layout.encoding)
        yield number, [f"{path.name}/{file.parent.name}/{file.stem}", text, file.parent.name]
