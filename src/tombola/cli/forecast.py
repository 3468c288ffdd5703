"""Estimate the time left of a run, from the pace of running stages and the duration of similar ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Clock = Callable[[], float]


class Work(Protocol):
    """What a display needs to know about a stage, or about a command's own work such as an attack."""

    @property
    def key(self) -> str:
        """The unique key of the work."""

    @property
    def kind(self) -> str:
        """The kind of work; work of one kind takes about the same time."""

    @property
    def label(self) -> str:
        """The text that users see."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The work that must be finished first."""

    def training_steps(self) -> int:
        """Return the number of optimizer steps; 0 if the work is no training."""


@dataclass(frozen=True)
class Job:
    """The work of a command that has no stages."""

    kind: str
    label: str
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The label: a command never runs two jobs with the same label at once."""
        return self.label

    def training_steps(self) -> int:
        """Return 0: a job is no training."""
        return 0


@dataclass
class Running:
    """A running stage: when it started, and what it last reported."""

    work: Work
    number: int
    begun: float
    step: int = 0
    steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    first: tuple[float, int] | None = None
    """Time and step of its first report: a resumed training does not start at step 0."""
    newest: float = 0.0
    stride: int = 1
    """Steps between its last two reports."""

    def left(self, now: float) -> float | None:
        """Return the seconds until the last step, at the stage's own pace; None before its second report.

        A report that is overdue slows the pace, as if it came now. The first steps of an attack take no time, for
        example: there is nothing to do for texts that the model gets wrong.
        """
        if self.first is None or self.step <= self.first[1]:
            return None
        since, done = self.first[0], self.step - self.first[1]
        pace, overdue = (self.newest - since) / done, (now - since) / (done + self.stride)
        if overdue > pace:
            return overdue * max(0, self.steps - self.step - self.stride)
        return max(0.0, pace * (self.steps - self.step) - (now - self.newest))


@dataclass(frozen=True)
class TimeLeft:
    """The seconds left; a lower bound unless `whole`, since the duration of some stages is unknown."""

    seconds: float
    whole: bool = True


class Forecast:
    """Follows a run and estimates the time left; prints nothing.

    Args:
        clock: Returns seconds since any starting point.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.started = clock()
        self.stages = self.finished = self.ran = 0
        self.running: dict[str, Running] = {}
        self._waiting: dict[str, Work] = {}
        self._units: dict[str, int] = {}
        self._taken: dict[str, list[tuple[float, int]]] = {}
        self._begun = self._width = 0

    def planned(self, stages: Sequence[Work], finished: Collection[str]) -> None:
        """Record the stages to run."""
        self.started = self.clock()
        self.stages, self.finished = len(stages), len(finished)
        self._begun = self.finished
        self._waiting = {stage.key: stage for stage in stages if stage.key not in finished}
        self._units = {key: stage.training_steps() or 1 for key, stage in self._waiting.items()}

    def begun(self, stage: Work) -> Running:
        """Record that a stage starts."""
        self._waiting.pop(stage.key, None)
        self._begun += 1
        self.running[stage.key] = Running(stage, self._begun, self.clock())
        self._width = max(self._width, len(self.running))
        return self.running[stage.key]

    def progressed(self, stage: Work, step: int, steps: int, figures: Mapping[str, float]) -> Running:
        """Record a stage's progress."""
        running, now = self.running[stage.key], self.clock()
        running.stride = max(1, step - running.step)
        running.step, running.steps, running.newest = step, steps, now
        running.figures = dict(figures)
        if running.first is None:
            running.first = (now, step)
        return running

    def ended(self, stage: Work, failed: bool = False) -> tuple[Running, float]:
        """Record that a stage ended, and drop those that need it if it failed; return its record and its seconds."""
        running = self.running.pop(stage.key)
        seconds = self.clock() - running.begun
        if failed:
            self._drop_after(stage.key)
        else:
            self.finished += 1
            self.ran += 1
            for group in (stage.kind, _group(stage)):
                self._taken.setdefault(group, []).append((seconds, self._units.get(stage.key, 1)))
        return running, seconds

    def _drop_after(self, key: str) -> None:
        for other in list(self._waiting.values()):
            if other.key in self._waiting and any(needed.key == key for needed in other.inputs.values()):
                del self._waiting[other.key]
                self._drop_after(other.key)

    def stage_left(self, key: str) -> float | None:
        """Return the seconds that a running stage still needs, at its own pace or that of similar stages."""
        running, now = self.running[key], self.clock()
        left = running.left(now)
        if left is not None:
            return left
        expected = self._expected(running.work, self._paces())
        return None if expected is None else max(0.0, expected - (now - running.begun))

    def run_left(self) -> TimeLeft | None:
        """Return the time until the end of the run, or None if nothing is known yet."""
        running = [self.stage_left(key) for key in self.running]
        paces = self._paces()
        waiting = [self._expected(stage, paces) for stage in self._waiting.values()]
        known = [seconds for seconds in (*running, *waiting) if seconds is not None]
        if not known:
            return None
        longest = max((seconds for seconds in running if seconds is not None), default=0.0)
        return TimeLeft(
            max(longest, sum(known) / max(1, self._width)), len(known) == len(running) + len(waiting)
        )

    def _paces(self) -> dict[str, float]:
        """Return the seconds per unit of work, by kind, and by kind and label."""
        durations = {group: list(found) for group, found in self._taken.items()}
        now = self.clock()
        for key, running in self.running.items():
            left = running.left(now)
            for group in (running.work.kind, _group(running.work)):
                if left is not None and group not in self._taken:
                    whole = (now - running.begun + left, self._units.get(key, 1))
                    durations.setdefault(group, []).append(whole)
        return {
            group: sum(seconds for seconds, _ in found) / sum(units for _, units in found)
            for group, found in durations.items()
        }

    def _expected(self, stage: Work, paces: Mapping[str, float]) -> float | None:
        pace = paces.get(_group(stage), paces.get(stage.kind))
        return None if pace is None else pace * self._units.get(stage.key, 1)


def _group(stage: Work) -> str:
    """Return the kind and label, whose stages are more alike than all stages of the kind."""
    return f"{stage.kind}/{stage.label}"


def describe(stage: Work) -> str:
    """Return the stage's label, with its seed if it has one."""
    seed = getattr(stage, "seed", None)
    return stage.label if seed is None else f"{stage.label}, seed {seed}"


def duration(seconds: float) -> str:
    """Format a duration: 3.2 s, 45 s, 4 min 5 s, 2 h 10 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def roughly(seconds: float) -> str:
    """Format an estimated duration: 10 s, 4 min, 2.5 h."""
    if seconds < 95:
        return f"{max(5, 5 * round(seconds / 5))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def left(time_left: TimeLeft | float | None) -> str:
    """Describe the time left."""
    if time_left is None:
        return "time left unknown"
    if isinstance(time_left, float | int):
        time_left = TimeLeft(time_left)
    return f"{'about' if time_left.whole else 'more than'} {roughly(time_left.seconds)} left"


def figures_text(figures: Mapping[str, float]) -> str:
    """Format a stage's latest figures: loss 0.412, accuracy 0.91."""
    shown = {name: value for name, value in figures.items() if name not in ("epoch", "learning_rate")}
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in shown.items())
