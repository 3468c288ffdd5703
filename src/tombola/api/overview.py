"""List, check and report: `catalogue` (the command `list`), `validate`, `report`, `compare`, `doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.foundations.sequences import as_tuple

if TYPE_CHECKING:
    from tombola.foundations.hardware.doctor import Check
    from tombola.results.comparing import ResultComparison
    from tombola.results.result import Result
    from tombola.store.store import Store


def catalogue(kind: str | None = None, search: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """List what recipes can refer to, with one line each: the command `tombola list`.

    Args:
        kind: One list, such as `tasks` or `attacks`; by default all.
        search: Only entries with this word in their name or description; empty lists are left out.
    """
    from tombola.recipe.catalogue import catalogue as find

    return find(kind, search)


def validate(file: Path | str, overrides: str | Iterable[str] = (), *, data: bool = False) -> str:
    """Check a recipe or a task file without running it, and raise all mistakes at once.

    Args:
        file: A recipe or task file, or the name of a built-in recipe.
        overrides: Changes to a recipe, one or several, such as `"draw.sparsity=0.5"`.
        data: Also read the data and the models' configs and tokenizers, and check that the trackers are installed.

    Returns:
        A one-sentence summary of the file. With `data`, also a line for each split: rows, labels, duplicates, texts
        that are in the training data too, and texts longer than the model's input.
    """
    from tombola.recipe.checking import check_file

    return check_file(str(file), as_tuple(overrides), data)


def report(
    folders: Path | str | Sequence[Path | str],
    path: Path | str = "report.html",
    *,
    store: Store | Path | str | None = None,
) -> Path:
    """Write one self-contained page: tables, curves, maps, attacked sentences, the recipe.

    Args:
        folders: Output folders of `run`, `study`, `transfer`, `share` or `attack`; several share one page.
        path: The page to write.
        store: The folder or URL of the store of finished stages, which holds the attacked sentences.
    """
    from tombola.report.page import report as write

    return write([folders] if isinstance(folders, Path | str) else folders, path, store=store)


def compare(*results: Result | Path | str) -> ResultComparison:
    """Compare two or more runs: their scores, and the differences from the first with 95 % intervals.

    Rows are matched by variant and grid point; runs of one row each are compared whatever the row is called.
    Differences are paired by seed if the runs have the same seeds.

    Args:
        *results: Results or run folders.

    Returns:
        The comparison: `table`, `rows()` and `frame()`, and `notes` on what only one run has.
    """
    from tombola.results.comparing import compare as put_side_by_side
    from tombola.results.result import Result

    return put_side_by_side(
        *(result if isinstance(result, Result) else Result.load(result) for result in results)
    )


def doctor(store: Path | str | None = None) -> list[Check]:
    """Check everything that runs depend on: versions, hardware, precision, store, optional packages.

    Args:
        store: The folder or URL of the store of finished stages.
    """
    from tombola.foundations.hardware.doctor import examine

    return examine(str(store) if store is not None else None)
