"""Plain text, a passage a line: what a language model is trained and judged on."""

from pathlib import Path

from tombola.tasks.readers import Malformed, Table, numbered_lines


def passage_table(path: Path) -> Table:
    """The lines of a text file."""
    return Table(
        ["text"], ((number, [line]) for number, line in numbered_lines(path)), lambda line: f"{path}:{line}"
    )


def without_blanks(table: Table) -> Table:
    """The same table without its rows of nothing but white space, which only part the passages."""
    rows = (
        (number, fields)
        for number, fields in table.rows
        if isinstance(fields, Malformed) or any(str(field).strip() for field in fields)
    )
    return table._replace(rows=rows)
