"""CoNLL files: one word per line with its columns, and a blank line between sentences."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.lines import ending_of, numbered_lines
from tombola.tasks.readers import Fields, Malformed, Table

if TYPE_CHECKING:
    from tombola.tasks.task import Task

_DOCUMENT = "-DOCSTART-"


def is_table(file: Path, task: "Task", layout: Layout) -> bool:
    """Return whether a file has one sentence per row, like tables, and .tsv or .txt files with such a header."""
    ending = ending_of(file)
    if ending in (".csv", ".json", ".jsonl", ".parquet"):
        return True
    if ending not in (".tsv", ".txt"):
        return False
    _, first = next(numbered_lines(file, layout.encoding), (0, ""))
    wanted = layout.map.get(task.text[0], task.text)
    return set(wanted) <= {name.strip() for name in first.split("\t")}


def conll_table(file: Path, task: "Task", layout: Layout) -> Table:
    """Return one row per sentence, with lists as columns. By default words come first and tags last.

    `header` names the columns; `map` may then select those of the words and the tags.
    """
    sentences = _sentences(file, task, layout)
    first = next(sentences, None)
    if first is None:
        raise DataError(f"{file}: contains no sentences.")
    width = len(first[1][0])
    words, tags = layout.map.get(task.text[0], task.text)[0], layout.map.get("tags", ["tags"])[0]
    header = layout.header or [words, *(f"column {n}" for n in range(2, width)), tags]
    if len(header) != width or width < 2:
        raise DataError(
            f"{file}:{first[0]}: {width} columns, but a line has {', '.join(header)}: list the file's columns in "
            "`header`, and map the words and `tags` to them with `map`."
        )

    def rows() -> Iterator[tuple[int, Fields]]:
        for line, lines in (first, *sentences):
            wrong = next((n for n, fields in enumerate(lines) if len(fields) != width), None)
            if wrong is not None:
                place = f"the sentence's word {wrong + 1}"
                yield line, Malformed(f"{place} has {len(lines[wrong])} columns instead of {width}")
            else:
                yield line, [list(column) for column in zip(*lines, strict=True)]

    return Table(header, rows(), lambda line: f"{file}:{line}")


def _sentences(file: Path, task: "Task", layout: Layout) -> Iterator[tuple[int, list[list[Any]]]]:
    """Yield the lines of each sentence, split into columns, with the number of the first line."""
    known = {*(task.labels or ()), *layout.values}
    start = 0
    lines: list[list[Any]] = []
    for number, line in numbered_lines(file, layout.encoding):
        fields = line.split("\t") if "\t" in line else line.split()
        fields = [field.strip() for field in fields]
        if not any(fields) or fields[0] == _DOCUMENT:
            if lines:
                yield start, lines
            lines = []
        elif not lines and line.startswith("#") and not _tagged(fields, known):
            continue  # a comment, as in Universal Dependencies
        else:
            start = start if lines else number
            lines.append(fields)
    if lines:
        yield start, lines


def _tagged(fields: list[str], known: set[str]) -> bool:
    """Return whether a line that begins with # tags the word #."""
    return len(fields) > 1 and fields[0] == "#" and bool(known & set(fields[1:]))
