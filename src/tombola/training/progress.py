"""A progress bar for whoever watches a run in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

if TYPE_CHECKING:
    from tombola.training.course import Progress


@contextmanager
def progress_bar(title: str, console: Console | None = None) -> Iterator["Progress"]:
    """A bar for the length of the block; what it yields is the `progress` that `train` takes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, TextColumn("{task.fields[figures]}"), console=console, transient=True) as bars:
        bar = bars.add_task(title, total=None, figures="")

        def show(step: int, steps: int, figures: dict[str, float]) -> None:
            text = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in figures.items())
            bars.update(bar, completed=step, total=steps, figures=text)

        yield show
