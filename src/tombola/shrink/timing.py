"""Time models in turns on the same batches: the speed-up of one over another, with a confidence interval.

Each round runs every model once, so that a ratio within a round compares two adjacent moments. Rounds in which the
models had to wait for a processor are repeated, within limits. With one thread, processor time is measured, which
excludes waiting.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple, TypeVar

from tombola.evaluation.intervals import fewest_for_median, median_interval
from tombola.shrink.sizes import Speedup

ROUNDS = 15
SECONDS = 20.0  # for all rounds together; forward passes are not interrupted
ATTEMPTS = 3  # the most rounds, as a multiple of `rounds`
QUIET = 0.95  # fraction of the requested processor time that an undisturbed pass gets
WARM_UP = 2
TASKS = Path("/proc/self/task")

Batch = TypeVar("Batch")


class Lap(NamedTuple):
    """One forward pass: its seconds, and the fraction of the requested processor time that it got."""

    seconds: float
    share: float


class Stopwatch:
    """Times forward passes, and detects interference by other processes.

    Args:
        clock: The clock that times a pass.
        accelerated: Whether an accelerator, not the CPU, does the work.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter, accelerated: bool = False) -> None:
        self.clock = clock
        self.accelerated = accelerated

    def for_one_thread(self) -> "Stopwatch":
        """Return a stopwatch for single-threaded work, whose processor time equals its duration on an idle machine."""
        return self if self.accelerated or self.clock is not perf_counter else Stopwatch(process_time)

    def now(self) -> float:
        """Return the wall clock in seconds since an arbitrary moment."""
        return perf_counter()

    def lap(self, run: Callable[[], object]) -> Lap:
        """Time one pass."""
        queued, processor = queued_seconds(), process_time()
        begin, start = perf_counter(), self.clock()
        run()
        seconds, wall = self.clock() - start, perf_counter() - begin
        processor, after = process_time() - processor, queued_seconds()
        if queued is not None and after is not None:
            waited = max(0.0, after - queued)  # smaller if a thread ended meanwhile
            return Lap(seconds, processor / (processor + waited) if waited else 1.0)
        # In an undisturbed pass some thread is always running, or waiting for the accelerator.
        return Lap(seconds, 1.0 if self.accelerated else min(1.0, processor / wall))


def queued_seconds() -> float | None:
    """Return the seconds for which this process's threads have waited for a processor; None if unknown."""
    ran = waited = 0
    try:
        threads = os.listdir(TASKS)
    except OSError:
        return None
    for thread in threads:
        try:
            fields = (TASKS / thread / "schedstat").read_text().split()
        except OSError:  # the thread has ended
            continue
        ran += int(fields[0])
        waited += int(fields[1])
    return waited / 1e9 if ran else None


@dataclass(frozen=True)
class Rounds:
    """The valid rounds, each with a lap of every model.

    Args:
        laps: The laps of each round, in the order of the models.
        share: The fraction of the requested processor time that the models got, if the machine was busy.
        few: Whether time ran out before enough rounds.
        fallback: Whether the models ran with one thread because the machine was too busy for more.
    """

    laps: list[list[Lap]]
    share: float | None = None
    few: bool = False
    fallback: bool = False

    def latency(self, model: int) -> float:
        """Return the median seconds of a model's passes."""
        return median(laps[model].seconds for laps in self.laps)

    def speedup(self, model: int, over: int = 0) -> Speedup:
        """Return the speed-up of a model over the first model, or over the model `over`."""
        ratio, low, high = median_interval([laps[over].seconds / laps[model].seconds for laps in self.laps])
        remarks = []
        if self.share is not None:
            remarks.append(f"the models got {self.share:.0%} of the processor time they requested")
        if self.fallback:
            remarks.append("measured with one thread")
        busy = None
        if remarks:
            busy = f"machine busy: {', '.join(remarks)}; ± {(high - low) / 2 / ratio:.0%}"
        elif self.few:
            busy = f"too slow for more than {len(self.laps)} rounds: the interval is their range"
        return Speedup(ratio=ratio, low=low, high=high, busy=busy)


def time_in_turns(
    models: Sequence[Callable[[Batch], object]],
    batches: Sequence[Batch],
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    watch: Stopwatch | None = None,
) -> Rounds:
    """Run the models in turns, each round on one batch, after a warm-up.

    A round is disturbed if a model got less than 95 % of the processor time it requested. Disturbed rounds are
    repeated until there are enough undisturbed ones, three times `rounds` have run, or time is up. If fewer
    than six rounds are undisturbed, the least disturbed ones are used, and `Speedup.busy` tells why.

    Args:
        models: The functions to run on a batch.
        batches: The inputs; rounds cycle through them.
        rounds: The number of undisturbed rounds.
        seconds: The time after which no round starts, except the first.
        watch: The stopwatch.
    """
    watch = watch or Stopwatch()
    start = watch.now()
    for turn in range(WARM_UP):
        for run in models:
            run(batches[turn % len(batches)])
    done: list[list[Lap]] = []
    quiet: list[list[Lap]] = []
    while len(quiet) < rounds and len(done) < ATTEMPTS * rounds:
        if done and watch.now() - start >= seconds:
            break
        done.append(_round(models, batches[len(done) % len(batches)], watch, backwards=len(done) % 2 == 1))
        if _share(done[-1]) >= QUIET:
            quiet.append(done[-1])
    if len(quiet) >= min(rounds, fewest_for_median()):
        return Rounds(quiet)
    if len(quiet) == len(done):
        return Rounds(quiet, few=True)
    best = sorted(done, key=_share, reverse=True)[:rounds]
    return Rounds(best, share=median(_share(laps) for laps in best))


def _round(
    models: Sequence[Callable[[Batch], object]], batch: Batch, watch: Stopwatch, backwards: bool
) -> list[Lap]:
    """Time one lap of every model. The order alternates, so that no model always finds warm caches."""
    laps = [watch.lap(lambda run=run: run(batch)) for run in (reversed(models) if backwards else models)]  # type: ignore[misc]
    return laps[::-1] if backwards else laps


def _share(laps: list[Lap]) -> float:
    return min(lap.share for lap in laps)
