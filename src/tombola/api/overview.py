"""The verbs that look and report: catalogue (`list`), validate, report, compare, doctor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tombola.foundations.hardware.doctor import Check
    from tombola.results.comparing import ResultComparison
    from tombola.results.result import Result
    from tombola.store.store import Store


def catalogue(kind: str | None = None, search: str | None = None) -> dict[str, list[tuple[str, str]]]:
    """What recipes may name, with one line each: the command `tombola list`.

    Args:
        kind: One list, such as `tasks` or `attacks`; by default all.
        search: Only entries that have this word in their name or line; lists without any are left out.
    """
    from tombola.recipe.catalogue import catalogue as find

    return find(kind, search)


def validate(file: Path | str, overrides: Iterable[str] = (), *, data: bool = False) -> str:
    """Check a recipe or a task file without running it; all mistakes are raised at once.

    Args:
        file: A recipe or task file, or the name of a built-in recipe.
        overrides: Changes to a recipe, such as `"draw.sparsity=0.5"`.
        data: Also read the data, the models' configs and tokenizers, and look for the trackers.

    Returns:
        A sentence that says what it is; with `data`, a line for every split besides: rows, labels, texts that repeat or
        stand in the training data too, and texts that are longer than the model reads.
    """
    from tombola.recipe.catalogue import check_file

    return check_file(str(file), overrides, data)


def report(
    folders: Path | str | Sequence[Path | str],
    path: Path | str = "report.html",
    *,
    store: Store | Path | str | None = None,
) -> Path:
    """Write one self-contained page: tables, curves, maps, attacked sentences, the recipe.

    Args:
        folders: Folders that `run`, `study`, `transfer`, `share` or `attack` wrote; several go on one page.
        path: The page to write.
        store: The folder or URL of finished stages, which attacked sentences are read from.
    """
    from tombola.report.page import report as write

    return write([folders] if isinstance(folders, Path | str) else folders, path, store=store)


def compare(*results: Result | Path | str) -> ResultComparison:
    """Put two or more runs side by side: their scores, and the difference to the first with its 95 % interval.

    Rows are matched by variant and by their point on the grid; runs of one row each are compared whatever it is called.
    Differences are paired by seed where the seeds agree.

    Args:
        *results: Results, or the folders of runs.

    Returns:
        The comparison: `table`, `rows()` and `frame()`, and `notes` on what only one run has.
    """
    from tombola.results.comparing import compare as put_side_by_side
    from tombola.results.result import Result

    return put_side_by_side(*(one if isinstance(one, Result) else Result.load(one) for one in results))


def doctor(store: Path | str | None = None) -> list[Check]:
    """Look at everything that runs depend on: versions, hardware, precision, store, optional packages.

    Args:
        store: The folder or URL of finished stages.
    """
    from tombola.foundations.hardware.doctor import examine

    return examine(str(store) if store is not None else None)
