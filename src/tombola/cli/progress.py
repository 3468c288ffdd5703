"""Progress of long-running work, the same for all commands: a display, and the views that show it.

A view is a set of bars on a terminal (`bars.py`), plain lines elsewhere (here), or events for programs (`events.py`).
Progress goes to stderr; stdout is for results, or for the events of `--json`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol, Self, TextIO

from tombola.cli.forecast import (
    Clock,
    Forecast,
    Job,
    Running,
    Work,
    describe,
    duration,
    figures_text,
    left,
)
from tombola.pipeline.watching import Watcher
from tombola.store.stage import Progress

LINE_SECONDS = 50.0
"""Without a terminal, every running stage gets a line at least this often."""

Now = Callable[[], datetime]


class Fault(Protocol):
    """Why a stage failed, and where its log is."""

    @property
    def reason(self) -> str:
        """The reason, in one sentence."""

    @property
    def log(self) -> Path:
        """The file with its traceback."""


class View:
    """Base class of views; shows nothing. It is notified of changes, and reads the rest from `forecast`."""

    forecast: Forecast
    lock: threading.RLock

    def start(self) -> None:
        """Start showing progress."""

    def stop(self) -> None:
        """Stop showing progress, even after an error."""

    def on_phase(self, phase: str) -> None:
        """A phase without stages starts, such as planning or writing results."""

    def on_planned(self) -> None:
        """The stages to run are known."""

    def on_begun(self, running: Running) -> None:
        """A stage starts."""

    def on_progressed(self, running: Running) -> None:
        """A stage has done some of its steps."""

    def on_ended(self, running: Running, seconds: float) -> None:
        """A stage is finished."""

    def on_failed(self, running: Running, seconds: float, failure: Fault) -> None:
        """A stage has failed."""

    def on_closed(self) -> None:
        """No more stages will run."""


class Display(Watcher):
    """Follows a run or a command's own work, and notifies views.

    Args:
        views: The views to notify.
        clock: Returns seconds since any starting point.
    """

    def __init__(self, *views: View, clock: Clock = time.monotonic) -> None:
        self.views = views
        self.forecast = Forecast(clock)
        self._lock = threading.RLock()
        for view in views:
            view.forecast, view.lock = self.forecast, self._lock

    def __enter__(self) -> Self:
        for view in self.views:
            view.start()
        return self

    def __exit__(self, *_: object) -> None:
        for view in self.views:
            view.stop()

    def phase(self, what: str) -> None:
        """Announce a phase without stages."""
        with self._lock:
            for view in self.views:
                view.on_phase(what)

    def planned(self, stages: Sequence[Work], finished: Collection[str]) -> None:
        """The run consists of these stages, of which those with the keys `finished` need not run."""
        with self._lock:
            self.forecast.planned(stages, finished)
            for view in self.views:
                view.on_planned()

    def begun(self, stage: Work) -> None:
        """A stage starts."""
        with self._lock:
            running = self.forecast.begun(stage)
            for view in self.views:
                view.on_begun(running)

    def progressed(self, stage: Work, step: int, steps: int, figures: Mapping[str, float]) -> None:
        """A stage has done `step` of its `steps`."""
        with self._lock:
            running = self.forecast.progressed(stage, step, steps, figures)
            for view in self.views:
                view.on_progressed(running)

    def ended(self, stage: Work, failure: Fault | None) -> None:
        """A stage is finished, or has failed."""
        with self._lock:
            running, seconds = self.forecast.ended(stage, failed=failure is not None)
            for view in self.views:
                if failure is None:
                    view.on_ended(running, seconds)
                else:
                    view.on_failed(running, seconds, failure)

    def close(self) -> None:
        """No more stages will run; their results are now collected and written."""
        with self._lock:
            for view in self.views:
                view.on_closed()
        self.phase("writing results")

    @contextmanager
    def job(self, kind: str, label: str) -> Iterator[Progress]:
        """Report the work of a command without stages, such as an attack, like a stage.

        Args:
            kind: The kind of work.
            label: The text that users see.

        Yields:
            A function to call with the number of steps done, the total, and the latest figures.
        """
        work = Job(kind, label)
        if not self.forecast.stages:
            self.planned([work], ())
        self.begun(work)
        yield lambda step, steps, figures: self.progressed(work, step, steps, figures)
        self.ended(work, None)


class Failures(View):
    """Prints failures as they happen, one line each, without colours.

    Args:
        stream: Where lines go; stderr by default.
        now: Returns the time of day.
    """

    def __init__(self, stream: TextIO | None = None, now: Now = datetime.now) -> None:
        self.stream, self.now = stream or sys.stderr, now

    def on_failed(self, running: Running, seconds: float, failure: Fault) -> None:
        """Print the reason, and the path of the log."""
        reason = failure.reason.rstrip(".")
        self.write(f"{self.place(running)}: failed after {duration(seconds)}: {reason}. Log: {failure.log}")

    def write(self, text: str) -> None:
        """Print a line with the time of day."""
        print(f"{self.now():%H:%M:%S} {text}", file=self.stream, flush=True)

    def place(self, running: Running) -> str:
        """Return the stage's number and its description."""
        of = f"[{running.number}/{self.forecast.stages}] " if self.forecast.stages > 1 else ""
        return f"{of}{describe(running.work)}"


class Lines(Failures):
    """Prints plain lines for log files, CI and batch systems: no colours, nothing overwritten.

    A thread prints a line at least once a minute, even while a stage reports nothing.

    Args:
        stream: Where lines go; stderr by default.
        now: Returns the time of day.
        every: The longest silence, in seconds.
    """

    def __init__(
        self, stream: TextIO | None = None, now: Now = datetime.now, every: float = LINE_SECONDS
    ) -> None:
        super().__init__(stream, now)
        self.every = every
        self.phase = ""
        self._phase_since = self._newest = 0.0
        self._written: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="progress", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()

    def on_phase(self, phase: str) -> None:
        """Print the first phase at once, before any heavy import; later ones are printed only if they take long."""
        if not (self.phase or self.forecast.stages):
            self.write(phase)
        self.phase = phase
        self._phase_since = self._newest = self.forecast.clock()

    def on_planned(self) -> None:
        """Print how many stages there are to run."""
        stages, finished = self.forecast.stages, self.forecast.finished
        if stages > 1:
            self.write(f"{stages} stages, {finished} finished, {stages - finished} to run")

    def on_begun(self, running: Running) -> None:
        """Print that a stage starts."""
        self._line(running, "started")

    def on_ended(self, running: Running, seconds: float) -> None:
        """Print the stage's time and last figures."""
        figures = figures_text(running.figures)
        self._line(running, f"finished in {duration(seconds)}" + (f", {figures}" if figures else ""))

    def on_closed(self) -> None:
        """Print the total time."""
        done = self.forecast.ran
        if self.forecast.stages > 1 and done:
            taken = duration(self.forecast.clock() - self.forecast.started)
            self.write(f"{done} {'stage' if done == 1 else 'stages'} finished in {taken}")

    def tick(self) -> None:
        """Print a line for everything that has been silent for too long."""
        with self.lock:
            now = self.forecast.clock()
            for key, running in self.forecast.running.items():
                if now - self._written[key] >= self.every:
                    self._line(running, self._state(running))
            if self.phase and not self.forecast.running and now - self._newest >= self.every:
                self._newest = now
                self.write(f"still {self.phase}, {duration(now - self._phase_since)} so far")

    def _state(self, running: Running) -> str:
        parts = [f"step {running.step} of {running.steps}"] if running.steps else []
        if figures := figures_text(running.figures):
            parts.append(figures)
        parts.append(f"{duration(self.forecast.clock() - running.begun)} so far")
        parts.append(left(self.forecast.stage_left(running.work.key)))
        text = ", ".join(parts)
        return f"{text}; run: {left(self.forecast.run_left())}" if self.forecast.stages > 1 else text

    def _line(self, running: Running, text: str) -> None:
        self._written[running.work.key] = self._newest = self.forecast.clock()
        self.write(f"{self.place(running)}: {text}")

    def _beat(self) -> None:
        while not self._stop.wait(min(1.0, self.every / 2)):
            self.tick()
