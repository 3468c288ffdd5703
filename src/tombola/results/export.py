"""Export tables as files, data frames and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.checksums import write_whole
from tombola.results.formatting import (
    SPARSITY,
    short_axis,
    short_targets,
    short_value,
    write_estimate,
    write_share,
)

if TYPE_CHECKING:
    import pandas

    from tombola.results.result import Result

Rows = Sequence[dict[str, Any]]


def frame(rows: Rows) -> pandas.DataFrame:
    """Return the rows as a data frame."""
    try:
        import pandas
    except ImportError:
        raise TombolaError("data frames need pandas: pip install 'tombola[frames]', or use rows()") from None
    return pandas.DataFrame(list(rows), columns=columns(rows))


def columns(rows: Rows) -> list[str]:
    """Return the columns of all rows, in order of first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def check_table(path: Path) -> None:
    """Raise an error if the file's extension is not that of a table."""
    if path.suffix not in (".csv", ".json", ".parquet"):
        raise TombolaError(f"{path}: tables are written as .csv, .json or .parquet")


def write_table(rows: Rows, path: Path) -> Path:
    """Write the rows as .csv, .json or .parquet, depending on the file's extension."""
    check_table(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        stream = io.StringIO(newline="")
        writer = csv.DictWriter(stream, columns(rows))
        writer.writeheader()
        writer.writerows(rows)
        write_whole(path, stream.getvalue(), newline="")
    elif path.suffix == ".json":
        write_whole(path, json.dumps(list(rows), indent=1, allow_nan=False))
    else:
        try:
            frame(_of_one_type(rows)).to_parquet(path, index=False)
        except ImportError:
            raise TombolaError("Parquet needs pyarrow: pip install 'tombola[frames]'") from None
    return path


def _of_one_type(rows: Rows) -> list[dict[str, Any]]:
    """Return the rows with columns of one type, as Parquet needs them: mixed values, such as 4 and `most`, as text."""
    types = {name: {type(row[name]) for row in rows if row.get(name) is not None} for name in columns(rows)}
    mixed = {name for name, kinds in types.items() if len(kinds) > 1 and not kinds <= {int, float}}
    return [
        {name: str(value) if name in mixed and value is not None else value for name, value in row.items()}
        for row in rows
    ]


def latex(result: Result) -> str:
    """Return the summary of a result as a LaTeX table with booktabs rules."""
    rows = result.summaries()
    axes = list(dict.fromkeys(axis for row in rows for axis in row.axes if axis != SPARSITY))
    short = short_targets(result.targets, result.tasks)
    head = ["variant", *map(short_axis, axes), "sparsity", *(f"{short[on]}" for on in result.targets)]
    lines = [
        rf"\begin{{tabular}}{{{'l' * (1 + len(axes))}{'r' * (1 + len(result.targets))}}}",
        r"\toprule",
        _line(head),
        r"\midrule",
    ]
    for row in rows:
        cells = [row.variant, *(short_value(row.axes.get(axis, "")) for axis in axes)]
        cells.append("dense" if row.dense else write_share(row.sparsity))
        cells += [write_estimate(row.scores.get(on), row.metrics.get(on, "")) for on in result.targets]
        lines.append(_line(cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _line(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(cell) for cell in cells) + r" \\"


def _escaped(text: str) -> str:
    r"""Escape text for LaTeX, with ± and − as symbols."""
    return "".join(_LATEX.get(character, character) for character in text)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
