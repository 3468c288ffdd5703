"""Split plain text into documents: whole files, between blank lines, or by headings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from tombola.tasks.lines import read_text
from tombola.tasks.passages import text_files
from tombola.tasks.readers import Malformed, Table

Division = Literal["auto", "headings", "files", "blank_lines", "lines"]
"""What counts as a document; `auto` means `headings` if the text begins with one, else `files`."""
Lines = Iterator[tuple[int, str]]


class DocumentTable(Table):
    """A table whose rows are already documents."""


def document_table(path: Path, column: str, division: Division, encoding: str | None = None) -> DocumentTable:
    """Read the documents of a text file, or of all .txt files in a folder, with their white space unchanged."""
    starts: list[tuple[Path, int]] = []  # where each document begins

    def rows() -> Iterator[tuple[int, Any]]:
        for file in text_files(path):
            lines = read_text(file, encoding).replace("\r\n", "\n").split("\n")
            for line, text in divide(enumerate(lines, start=1), division):
                starts.append((file, line))
                yield len(starts), [text]

    def where(row: int) -> str:
        file, line = starts[row - 1] if row <= len(starts) else (path, 1)
        return f"{file}:{line}"

    return DocumentTable([column], rows(), where)


def joined_rows(table: Table, column: int, division: Division) -> Table:
    """Return the documents of a table. Rows are documents, or lines of documents that begin with a heading.

    The published WikiText has one line of text per row. Other divisions apply to files, so rows stay whole.
    """
    if isinstance(table, DocumentTable) or division not in ("auto", "headings"):
        return table
    return table._replace(rows=_joined(table, column, division))


def _joined(table: Table, column: int, division: Division) -> Iterator[tuple[int, Any]]:
    rows = list(table.rows)
    texts = [None if isinstance(fields, Malformed) else fields[column] for _, fields in rows]
    numbers = (number for number, _ in rows)
    lines = [
        (number, text.removesuffix("\n"))
        for number, text in zip(numbers, texts, strict=True)
        if isinstance(text, str)
    ]
    if len(lines) < len(rows) or (division == "auto" and not _begins_with_heading(text for _, text in lines)):
        yield from rows
        return
    first = dict(rows)
    for number, text in divide(iter(lines), "headings"):
        yield number, [text if place == column else field for place, field in enumerate(first[number])]


def divide(lines: Lines, division: Division) -> Lines:
    """Group lines into documents, each with the number of its first line, and drop blank ones."""
    numbered = list(lines)
    if division == "auto":
        division = "headings" if _begins_with_heading(text for _, text in numbered) else "files"
    start, document = 1, list[str]()
    for number, line in numbered:
        parting = division == "blank_lines" and not line.strip()
        if document and (parting or division == "lines" or (division == "headings" and is_heading(line))):
            yield from _whole(start, document)
            document = []
        if parting:
            continue
        start = start if document else number
        document.append(line)
    yield from _whole(start, document)


def is_heading(line: str) -> bool:
    """Return whether a line is the title of an article, ` = Title = ` in WikiText, and not that of a section."""
    line = line.replace("= = =", "===").replace("= =", "==").strip()
    return line.startswith("= ") and line.endswith(" =") and len(line) > len("= =")


def _begins_with_heading(lines: Iterator[str]) -> bool:
    return is_heading(next((line for line in lines if line.strip()), ""))


def _whole(start: int, lines: list[str]) -> Lines:
    text = "\n".join(lines)
    if text.strip():
        yield start, text
