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
        parameters=round(mean(one.ticket.parameters for one in measured)),
        bytes=round(mean(one.ticket.bytes for one in measured)),
        milliseconds={
            batch: (
                1000 * mean(one.dense.latency[batch] for one in measured),
                1000 * mean(one.ticket.latency[batch] for one in measured),
            )
            for batch in sorted(measured[0].ticket.latency)
            if all(batch in one.dense.latency and batch in one.ticket.latency for one in measured)
        },
    )


def mean_speedups(measured: Sequence[Measured]) -> dict[int, Speedup]:
    """Return the speed-up by batch size: the geometric mean over seeds with its t interval, or that of one run.

    Seeds that share a model share its measurement, which counts as one run.
    """
    batches = sorted(set.intersection(*(set(one.speedup) for one in measured))) if measured else []
    return {batch: _mean([one.speedup[batch] for one in measured]) for batch in batches}


def _mean(speedups: Sequence[Speedup]) -> Speedup:
    ratios = [log(one.ratio) for one in speedups]
    if all_equal(ratios):
        return speedups[0]
    found = mean_interval(ratios)
    busy = "; ".join(dict.fromkeys(one.busy for one in speedups if one.busy)) or None
    return Speedup(ratio=exp(found.mean), low=exp(found.low), high=exp(found.high), busy=busy)
