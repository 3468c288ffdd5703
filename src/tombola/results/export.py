"""Tidy tables as files and for pandas."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError

if TYPE_CHECKING:
    import pandas

Rows = Sequence[dict[str, Any]]


def frame(rows: Rows) -> pandas.DataFrame:
    """The rows as a data frame."""
    try:
        import pandas
    except ImportError:
        raise TombolaError("data frames need pandas: pip install 'tombola[frames]', or use rows()") from None
    return pandas.DataFrame(list(rows), columns=columns(rows))


def columns(rows: Rows) -> list[str]:
    """The columns of all rows, in the order in which they first come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def write_table(rows: Rows, path: Path) -> Path:
    """Write the rows as .csv, .json or .parquet, by the name of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns(rows))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(list(rows), indent=1, allow_nan=False))
    elif path.suffix == ".parquet":
        try:
            frame(rows).to_parquet(path, index=False)
        except ImportError:
            raise TombolaError("Parquet needs pyarrow: pip install 'tombola[frames]'") from None
    else:
        raise TombolaError(f"{path}: tables are written as .csv, .json or .parquet")
    return path
