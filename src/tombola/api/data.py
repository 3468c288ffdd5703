"""Write task files for users' data: `init_task` (the command `task init`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.foundations.sequences import as_tuple

if TYPE_CHECKING:
    from tombola.tasks.inferring import Inferred


def init_task(
    data: Path | str,
    path: Path | str | None = None,
    *,
    text: str | Iterable[str] = (),
    label: str | None = None,
    language: str | None = None,
    force: bool = False,
) -> Inferred:
    """Write a commented task file for a data file: the command `tombola task init`.

    Columns, labels, delimiter and encoding are inferred; a fixed 10 % of the examples are held out for validation
    and 20 % for testing.

    Args:
        data: A .csv, .tsv, .jsonl, .json or .parquet file; or a folder with such a file called train and, if there are
            any, validation and test.
        path: The task file, in the folder of the data or one above it; by default `DATA.task.yaml` next to the data.
        text: The text column, or the two columns of text pairs; inferred by default.
        label: The label column; inferred by default.
        language: The language of the texts, such as `de`; by default English, or `und` (unknown) if most words are not.
        force: Overwrite an existing task file.

    Returns:
        The task, the path of its file, and notes on what was inferred.
    """
    from tombola.tasks import inferring

    return inferring.init_task(
        Path(data),
        as_tuple(text),
        label,
        Path(path) if path is not None else None,
        replace=force,
        language=language,
    )
