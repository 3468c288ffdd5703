"""Progress and results for programs: with `--json`, one JSON object per line on stdout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from math import isfinite
from typing import Any, TextIO

from tombola.cli.forecast import Running, describe
from tombola.cli.progress import Fault, Now, View

DIGITS = 6
"""The decimals of figures in events."""
EVENT_SECONDS = 1.0
"""The shortest time between two progress events of a stage."""


class Events(View):
    """Writes `planned`, `begun`, `progressed`, `ended` and `failed` events; the command itself adds its results.

    Args:
        stream: Where events go.
        now: Returns the time of day.
        every: The shortest time between two progress events of a stage.
    """

    def __init__(self, stream: TextIO, now: Now = datetime.now, every: float = EVENT_SECONDS) -> None:
        self.stream, self.now, self.every = stream, now, every
        self._sent: dict[str, float] = {}

    def send(self, event: str, **content: Any) -> None:
        """Write an event with the current time."""
        self._write({"event": event, "time": self._time(), **plain(content, DIGITS)})

    def send_row(self, event: str, row: Mapping[str, Any]) -> None:
        """Write an event with a row of the user's data, whose numbers are not rounded."""
        self._write({"event": event, "time": self._time(), "row": plain(row)})

    def _time(self) -> str:
        return self.now().astimezone().isoformat(timespec="seconds")

    def _write(self, whole: dict[str, Any]) -> None:
        print(json.dumps(whole, allow_nan=False), file=self.stream, flush=True)

    def on_planned(self) -> None:
        """Write the number of stages, and how many of them are finished."""
        stages, finished = self.forecast.stages, self.forecast.finished
        self.send("planned", stages=stages, finished=finished, to_run=stages - finished)

    def on_begun(self, running: Running) -> None:
        """Write that a stage starts."""
        self.send("begun", **self._stage(running))

    def on_progressed(self, running: Running) -> None:
        """Write a stage's progress, at limited frequency; its last step always."""
        key, now = running.work.key, self.forecast.clock()
        if running.step < running.steps and now - self._sent.get(key, -self.every) < self.every:
            return
        self._sent[key] = now
        stage_left, run_left = self.forecast.stage_left(key), self.forecast.run_left()
        self.send(
            "progressed",
            **self._stage(running),
            step=running.step,
            steps=running.steps,
            figures=running.figures,
            stage_seconds_left=stage_left,
            run_seconds_left=run_left.seconds if run_left else None,
            run_seconds_left_is_lower_bound=run_left is None or not run_left.whole,
        )

    def on_ended(self, running: Running, seconds: float) -> None:
        """Write that a stage finished, with its time and last figures."""
        self.send("ended", **self._stage(running), seconds=seconds, figures=running.figures)

    def on_failed(self, running: Running, seconds: float, failure: Fault) -> None:
        """Write why a stage failed, and the path of its log."""
        self.send(
            "failed",
            **self._stage(running),
            seconds=seconds,
            reason=failure.reason,
            log=str(failure.log),
        )

    def _stage(self, running: Running) -> dict[str, Any]:
        work = running.work
        return {
            "stage": getattr(work, "name", work.key),
            "kind": work.kind,
            "label": describe(work),
            "number": running.number,
            "stages": self.forecast.stages,
        }


def plain(value: Any, digits: int | None = None) -> Any:
    """Convert a value to what JSON can hold: NaN and infinity become null; other floats are rounded if asked to."""
    if isinstance(value, Mapping):
        return {str(name): plain(inner, digits) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, digits) for inner in value]
    if isinstance(value, float):
        return None if not isfinite(value) else value if digits is None else round(value, digits)
    return value if isinstance(value, int | str | bool | None) else str(value)
