"""Progress bars on a terminal: one for each running stage, and one for the whole run with the time left."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from tombola.cli.forecast import Running, describe, duration, figures_text, left
from tombola.cli.progress import Fault, View

ROWS = 8
"""The most bars to show; further running stages are only counted."""


class Bars(View):
    """Bars that are redrawn several times a second and disappear at the end; failures stay.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._spinner = Spinner("dots", text="starting")
        self._drawn = Group(self._spinner)
        self._live: Live | None = None

    def start(self) -> None:
        """Start drawing."""
        self._live = Live(
            get_renderable=self.render, console=self.console, refresh_per_second=4, transient=True
        )
        self._live.start()

    def stop(self) -> None:
        """Clear the bars and release the terminal."""
        if self._live is not None:
            self._live.stop()

    def on_phase(self, phase: str) -> None:
        """Show the phase next to the spinner."""
        self._spinner.update(text=phase)

    def on_failed(self, running: Running, seconds: float, failure: Fault) -> None:
        """Print the failure above the bars, where it stays."""
        self.console.print(Text.assemble(("failed ", "red"), f"{describe(running.work)}: {failure.reason}"))
        self.console.print(Text(f"       its log: {failure.log}"), soft_wrap=True)

    def render(self) -> Group:
        """Return the current bars, or the last ones if the lock is taken: drawing never waits.

        The thread that holds the lock may be printing, and printing waits for the drawing.
        """
        if self.lock.acquire(blocking=False):
            try:
                self._drawn = self._draw()
            finally:
                self.lock.release()
        return self._drawn

    def _draw(self) -> Group:
        rows = list(self.forecast.running.values())
        if not rows:
            return Group(self._spinner)
        lines: list[Any] = [self._overall()] if self.forecast.stages > 1 else []
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(ratio=3, no_wrap=True, overflow="ellipsis")
        table.add_column(ratio=2)
        for _ in range(3):
            table.add_column(no_wrap=True, justify="right")
        for running in rows[:ROWS]:
            table.add_row(*self._row(running))
        lines.append(table)
        if len(rows) > ROWS:
            lines.append(Text(f"  and {len(rows) - ROWS} more"))
        return Group(*lines)

    def _overall(self) -> Table:
        forecast = self.forecast
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, justify="right")
        number = max(running.number for running in forecast.running.values())
        bar = ProgressBar(total=forecast.stages, completed=forecast.finished)
        line.add_row(f"stage {number} of {forecast.stages}", bar, left(forecast.run_left()))
        return line

    def _row(self, running: Running) -> tuple[str | ProgressBar, ...]:
        now, steps = self.forecast.clock(), running.steps
        bar = ProgressBar(total=steps or None, completed=running.step, pulse=not steps, animation_time=now)
        time_left = self.forecast.stage_left(running.work.key)
        return (
            f"  {describe(running.work)}",
            bar,
            f"{running.step}/{steps}" if steps else "",
            figures_text(running.figures).split(", ")[0],
            duration(now - running.begun) if time_left is None else left(time_left),
        )
