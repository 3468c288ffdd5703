"""How long work reports while it runs, the same for all verbs: a display, and the views that show it.

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
        """In a sentence."""

    @property
    def log(self) -> Path:
        """The file with its traceback."""


class View:
    """Shows nothing; the base of those that do. It is told what has changed, and reads the rest in `forecast`."""

    forecast: Forecast
    lock: threading.RLock

    def start(self) -> None:
        """Begin to show."""

    def stop(self) -> None:
        """Show nothing any more, whatever has happened."""

    def on_phase(self, phase: str) -> None:
        """What happens while no stage runs: planning, writing results."""

    def on_planned(self) -> None:
        """It is known how much there is to do."""

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
    """Follows a run or a verb's own work, and has views show it.

    Args:
        views: Who shows it.
        clock: Seconds from any starting point.
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
        """Tell what happens while no stage runs."""
        with self._lock:
            for view in self.views:
                view.on_phase(what)

    def planned(self, stages: Sequence[Work], finished: Collection[str]) -> None:
        """All stages, and the keys of those that are finished already."""
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
        """A stage has done so many of its steps."""
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
        """No more stages will run; their results are collected and written."""
        with self._lock:
            for view in self.views:
                view.on_closed()
        self.phase("writing results")

    @contextmanager
    def job(self, kind: str, label: str) -> Iterator[Progress]:
        """The work of a verb without stages, such as an attack, reported as a stage is.

        Args:
            kind: What sort of work.
            label: What the reader sees.

        Yields:
            What to call with the steps done, the steps in all, and the newest figures.
        """
        work = Job(kind, label)
        if not self.forecast.stages:
            self.planned([work], ())
        self.begun(work)
        yield lambda step, steps, figures: self.progressed(work, step, steps, figures)
        self.ended(work, None)


class Failures(View):
    """Says at once what fails, in one line without colours.

    Args:
        stream: Where lines go; stderr by default.
        now: The time of day.
    """

    def __init__(self, stream: TextIO | None = None, now: Now = datetime.now) -> None:
        self.stream, self.now = stream or sys.stderr, now

    def on_failed(self, running: Running, seconds: float, failure: Fault) -> None:
        """The reason, and the path of the log."""
        reason = failure.reason.rstrip(".")
        self.write(f"{self.place(running)}: failed after {duration(seconds)}: {reason}. Log: {failure.log}")

    def write(self, text: str) -> None:
        """A line with the time of day."""
        print(f"{self.now():%H:%M:%S} {text}", file=self.stream, flush=True)

    def place(self, running: Running) -> str:
        """The stage, and its number of how many."""
        of = f"[{running.number}/{self.forecast.stages}] " if self.forecast.stages > 1 else ""
        return f"{of}{describe(running.work)}"


class Lines(Failures):
    """Plain lines, for log files, CI and batch systems: no colours, nothing written over.

    A thread sees to it that a line comes at least once a minute, even while a stage reports nothing.

    Args:
        stream: Where lines go; stderr by default.
        now: The time of day.
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
        """Let the heart beat."""
        self._thread.start()

    def stop(self) -> None:
        """Let it end."""
        self._stop.set()
        self._thread.join()

    def on_phase(self, phase: str) -> None:
        """The first phase is a sign of life, before anything heavy is imported; later ones show if they take long."""
        if not (self.phase or self.forecast.stages):
            self.write(phase)
        self.phase = phase
        self._phase_since = self._newest = self.forecast.clock()

    def on_planned(self) -> None:
        """How much there is to do."""
        stages, finished = self.forecast.stages, self.forecast.finished
        if stages > 1:
            self.write(f"{stages} stages, {finished} finished, {stages - finished} to run")

    def on_begun(self, running: Running) -> None:
        """A line for the start."""
        self._line(running, "started")

    def on_ended(self, running: Running, seconds: float) -> None:
        """A line with the stage's time and its last figures."""
        figures = figures_text(running.figures)
        self._line(running, f"finished in {duration(seconds)}" + (f", {figures}" if figures else ""))

    def on_closed(self) -> None:
        """How long it took altogether."""
        done = self.forecast.ran
        if self.forecast.stages > 1 and done:
            taken = duration(self.forecast.clock() - self.forecast.started)
            self.write(f"{done} {'stage' if done == 1 else 'stages'} finished in {taken}")

    def tick(self) -> None:
        """Write a line for all that has been silent for too long."""
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
