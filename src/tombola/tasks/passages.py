"""Plain text with one passage per line, for training and evaluating language models."""

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from tombola.errors import DataError
from tombola.tasks.lines import numbered_lines
from tombola.tasks.readers import Fields, Malformed, Table


def text_files(path: Path) -> list[Path]:
    """Return a text file, or all .txt files in a folder and its sub-folders, sorted by name."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*.txt*") if file.name.endswith((".txt", ".txt.gz")))
    if not files:
        raise DataError(f"{path}: the folder has no .txt file.")
    return files


def passage_table(path: Path, column: str = "text", encoding: str | None = None) -> Table:
    """Read the lines of a text file, or of all .txt files in a folder and its sub-folders."""
    files = text_files(path)
    starts: list[int] = []  # rows before each file

    def rows() -> Iterator[tuple[int, Fields]]:
        row = 0
        for file in files:
            starts.append(row)
            for _, line in numbered_lines(file, encoding):
                row += 1
                yield row, [line]

    def where(row: int) -> str:
        at = bisect_left(starts, row) - 1
        return f"{files[at]}:{row - starts[at]}" if starts else str(path)

    return Table([column], rows(), where)


def without_blanks(table: Table) -> Table:
    """Return the table without blank rows, which only separate passages."""
    rows = (
        (number, fields)
        for number, fields in table.rows
        if isinstance(fields, Malformed) or any(str(field).strip() for field in fields)
    )
    return table._replace(rows=rows)
