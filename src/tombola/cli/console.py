"""What the person at the terminal sees while things happen: progress, and where results went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from tombola.pipeline.running import Watch
    from tombola.pipeline.stages import Progress as StageProgress
    from tombola.store.store import Stage, Store

out = Console()
err = Console(stderr=True)


def announce(stages: list[Stage], store: Store) -> None:
    """Say how much there is to do."""
    finished = sum(store.has(stage) for stage in stages)
    rest = len(stages) - finished
    found = f", {finished} found finished in the store" if finished else ""
    err.print(f"{len(stages)} stages{found}: {rest} to run")


@contextmanager
def watching() -> Iterator[Watch]:
    """A live line per running stage, and one that stays for each that is done."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        current: list[Any] = []

        def watch(stage: Stage, found: bool) -> StageProgress:
            for task in current:
                progress.remove_task(task)
            current.clear()
            if found:
                return lambda step, total: None
            task = progress.add_task(stage.label or stage.kind, total=None)
            current.append(task)
            return lambda step, total: progress.update(task, completed=step, total=total)

        yield watch


@contextmanager
def counting(title: str) -> Iterator[Callable[[int], None]]:
    """A bar for a number of examples; what it yields is told how many have just ended."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.completed} done"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda ended: progress.advance(task, ended)


def say(what: str, path: Path) -> None:
    """Where something was written."""
    out.print(f"{what:<8} {path}", soft_wrap=True, highlight=False)
