"""Size and speed over seeds. Speed-ups are ratios timed in turns in one process, never across two stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import mean

from tombola.evaluation.intervals import mean_interval
from tombola.pipeline.stages.measure import Measured
from tombola.results.statistics import all_equal
from tombola.shrink.sizes import Speedup


@dataclass(frozen=True)
class Shipped:
    """The size and speed of a shipped model, averaged over seeds.

    Attributes:
        parameters: Parameters of the shipped model.
        bytes: Size on disk.
        milliseconds: By batch size, the times of the dense and the shipped model, timed in turns.
    """

    parameters: int
    bytes: int
    milliseconds: dict[int, tuple[float, float]]


def mean_shipped(measured: Sequence[Measured]) -> Shipped | None:
    """Return the mean sizes and times over seeds."""
    if not measured:
        return None
    return Shipped(
        parameters=round(mean(run.ticket.parameters for run in measured)),
        bytes=round(mean(run.ticket.bytes for run in measured)),
        milliseconds={
            batch: (
                1000 * mean(run.dense.latency[batch] for run in measured),
                1000 * mean(run.ticket.latency[batch] for run in measured),
            )
            for batch in sorted(measured[0].ticket.latency)
            if all(batch in run.dense.latency and batch in run.ticket.latency for run in measured)
        },
    )


def mean_speedups(measured: Sequence[Measured]) -> dict[int, Speedup]:
    """Return the speed-up by batch size: the geometric mean over seeds with its t interval, or that of one run.

    Seeds that share a model share its measurement, which counts as one run.
    """
    batches = sorted(set.intersection(*(set(run.speedup) for run in measured))) if measured else []
    return {batch: _mean([run.speedup[batch] for run in measured]) for batch in batches}


def _mean(speedups: Sequence[Speedup]) -> Speedup:
    ratios = [log(one.ratio) for one in speedups]
    if all_equal(ratios):
        return speedups[0]
    interval = mean_interval(ratios)
    busy = "; ".join(dict.fromkeys(speedup.busy for speedup in speedups if speedup.busy)) or None
    return Speedup(ratio=exp(interval.mean), low=exp(interval.low), high=exp(interval.high), busy=busy)
