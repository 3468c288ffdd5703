"""What all benchmarks share: ways that take turns, two clocks, intervals, goals, and a table of 80 columns.

A benchmark is a script with a function that yields `Figure`s. `run` gives it a command line, prints the table, and
writes the figures as JSON for `bench.py`, which runs all of them.
"""

import argparse
import json
import resource
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from tombola.evaluation.intervals import median_interval
from tombola.foundations.hardware.machine import cores
from tombola.foundations.hardware.threads import wait_patiently
from tombola.shrink.timing import QUIET, queued_seconds

IDLE = 0.25  # cores: less than this is the noise of a machine on which nobody else works
LOOK = 0.5  # seconds for which the machine is watched before a benchmark


@dataclass(frozen=True)
class Figure:
    """One measured number and what it should reach.

    Args:
        name: What was measured; `a ÷ b` for a ratio.
        value: The number.
        goal: The most it may be, such as `≤ 1.03`, or the least, such as `≥ 4`; empty if it has none.
        unit: Of the value; empty for a ratio.
        low: Lower end of the 95 % interval.
        high: Upper end of it.
        wall: The same number by wall time, where the value is processor time.
        note: What else a reader needs to know.
        busy: What kept the machine busy meanwhile, if anything.
    """

    name: str
    value: float
    goal: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    wall: float | None = None
    note: str = ""
    busy: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without a goal."""
        if not self.goal:
            return None
        sign, limit = self.goal.split()
        return self.value <= float(limit) if sign == "≤" else self.value >= float(limit)


class Lap(NamedTuple):
    """One turn: its processor time, its wall time, and the share it got of the processor time it asked for."""

    processor: float
    wall: float
    share: float


@dataclass(frozen=True)
class Turns:
    """The laps of each way, round by round."""

    laps: dict[str, list[Lap]]

    @property
    def busy(self) -> str:
        """A remark if the ways had to wait for a processor."""
        share = median(min(lap.share for lap in laps) for laps in zip(*self.laps.values(), strict=True))
        return "" if share >= QUIET else f"got {share:.0%} of the processor time it asked for"

    def seconds(self, way: str) -> float:
        """The median processor time of a way."""
        return median(lap.processor for lap in self.laps[way])

    def ratio(self, name: str, way: str, over: str, goal: str = "") -> Figure:
        """How many times the time of another a way takes: the median over the rounds.

        Args:
            name: What the figure is called.
            way: The numerator.
            over: The denominator.
            goal: As in `Figure`.
        """
        pairs = list(zip(self.laps[way], self.laps[over], strict=True))
        middle, low, high = median_interval([one.processor / other.processor for one, other in pairs])
        wall = median(one.wall / other.wall for one, other in pairs)
        note = f"{milliseconds(self.seconds(way))} ÷ {milliseconds(self.seconds(over))}"
        return Figure(name, middle, goal, low=low, high=high, wall=wall, note=note, busy=self.busy)

    def time(self, name: str, way: str, goal: str = "") -> Figure:
        """The seconds that a way takes: the median over the rounds.

        Args:
            name: What the figure is called.
            way: Which way.
            goal: As in `Figure`.
        """
        middle, low, high = median_interval([lap.processor for lap in self.laps[way]])
        wall = median(lap.wall for lap in self.laps[way])
        return Figure(name, middle, goal, "s", low, high, wall, busy=self.busy)


def milliseconds(seconds: float) -> str:
    """A time in milliseconds, with three digits."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{1e3 * seconds:.0f} ms"


def in_turns(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    seconds: float = 120,
    warm_up: int = 1,
    before: Callable[[], object] = lambda: None,
) -> Turns:
    """Time the ways in turns. Who goes first alternates, so that nobody always finds the caches warm.

    Args:
        ways: What to time.
        rounds: How often every way takes its turn.
        seconds: Time after which no further round begins.
        warm_up: Rounds before these, which do not count.
        before: Called before each turn; its time does not count.
    """
    laps: dict[str, list[Lap]] = {name: [] for name in ways}
    start = perf_counter()
    for turn in range(-warm_up, rounds):
        if turn > 0 and perf_counter() - start > seconds:
            break
        for name in ways if turn % 2 else reversed(ways):
            before()
            lap = lap_of(ways[name])
            if turn >= 0:
                laps[name].append(lap)
    return Turns(laps)


def lap_of(way: Callable[[], object]) -> Lap:
    """Time one turn of a way."""
    queued, processor, wall = queued_seconds(), processor_seconds(), perf_counter()
    way()
    wall, processor, after = perf_counter() - wall, processor_seconds() - processor, queued_seconds()
    waited = max(0.0, after - queued) if queued is not None and after is not None else 0.0
    return Lap(processor, wall, processor / (processor + waited) if processor else 1.0)


def processor_seconds() -> float:
    """The processor time of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


class PeakMemory:
    """The most memory that the process holds while the block runs, beyond what it held before, in bytes."""

    def __enter__(self) -> "PeakMemory":
        self.process, self.over = psutil.Process(), threading.Event()
        self.before = self.top = self._resident()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _resident(self) -> int:
        return int(self.process.memory_info().rss)

    def _watch(self) -> None:
        while not self.over.wait(0.002):
            self.top = max(self.top, self._resident())

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.after = self._resident()
        self.extra = max(self.top, self.after) - self.before


def others_at_work(seconds: float = LOOK) -> float:
    """How many cores other processes keep busy, seen while this process sleeps."""
    return psutil.cpu_percent(interval=seconds) / 100 * (psutil.cpu_count() or 1)


def run(
    doc: str,
    figures: Callable[[argparse.Namespace], Iterable[Figure]],
    options: Callable[[argparse.ArgumentParser], None] | None = None,
) -> None:
    """The command line of a benchmark: measure, print the table, and write the figures if asked to.

    Args:
        doc: The script's docstring.
        figures: Measures, and yields each figure when it is there.
        options: Adds the script's own options.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it runs, not to quote")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch (default: 1)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    if options:
        options(parser)
    given = parser.parse_args()
    wait_patiently()
    import torch

    torch.set_num_threads(given.threads)
    others = others_at_work()
    found = []
    for figure in figures(given):
        found.append(figure)
        print(f"  {figure.name}: {next(cells(figure))}", file=sys.stderr, flush=True)
    if given.json:
        rows = [asdict(figure) for figure in found]
        given.json.write_text(json.dumps({"others": round(others, 2), "figures": rows}), encoding="utf-8")
    table = table_of(doc.splitlines()[0], found)
    table.caption = "; ".join(filter(None, [f"{given.threads} thread(s)", busy_remark(others)]))
    Console().print(table)


def busy_remark(others: float) -> str:
    """A warning if other processes were at work."""
    return "" if others < IDLE else f"machine busy: others used {others:.1f} of {cores()} cores"


def table_of(title: str, figures: Iterable[Figure]) -> Table:
    """Goal, figure, interval and wall time of each figure, in 80 columns."""
    table = Table(title=title, width=80)
    table.add_column("what", ratio=1)
    for heading in ("goal", "figure", "95 % interval", "wall"):
        table.add_column(heading, justify="right", no_wrap=True)
    for figure in figures:
        table.add_row(figure.name, figure.goal, *cells(figure))
    return table


def cells(figure: Figure) -> Iterator[str]:
    """Figure, interval and wall time as text; a figure that misses its goal is marked."""
    unit = f" {figure.unit}" if figure.unit else ""
    mark = "✗ " if figure.met is False else ""
    busy = " *" if figure.busy else ""
    yield f"{mark}{digits(figure.value)}{unit}{busy}"
    yield "" if figure.low is None else f"{digits(figure.low)} to {digits(figure.high)}"
    yield "" if figure.wall is None else digits(figure.wall)


def digits(value: float | None) -> str:
    """Three significant digits at most, two decimals at least where it is below ten."""
    if value is None:
        return ""
    size = abs(value)
    return f"{value:.3f}" if size < 0.1 else f"{value:.2f}" if size < 10 else f"{value:,.0f}"
