"""A live table of a study: one bar for all, and a line for each stage that runs now."""

from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tombola.cli.console import err
from tombola.pipeline.engines import Failure, Watcher
from tombola.store.store import Stage


class LiveTable(Watcher):
    """Shows what happens on a terminal; elsewhere only what fails."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=err, transient=True)
        self._all = self._progress.add_task("stages", total=None)
        self._running: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def planned(self, stages: int, found: int) -> None:
        """Set the length of the bar."""
        self._progress.update(self._all, total=stages, completed=found)

    def begun(self, stage: Stage) -> None:
        """Add a line."""
        seed = f", seed {stage.settings['seed']}" if "seed" in stage.settings else ""
        self._running[stage.key] = self._progress.add_task(f"  {stage.label}{seed}", total=None)

    def progressed(self, stage: Stage, step: int, steps: int) -> None:
        """Move the stage's bar."""
        self._progress.update(self._running[stage.key], completed=step, total=steps)

    def ended(self, stage: Stage, failure: Failure | None) -> None:
        """Take the line away; a failure is said at once."""
        self._progress.remove_task(self._running.pop(stage.key))
        self._progress.advance(self._all)
        if failure is not None:
            err.print(f"[red]failed[/red] {stage.label}: {failure.reason}", highlight=False)
