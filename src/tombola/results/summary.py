"""Statistics over seeds: one row of a table for every variant at every point of the grid."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot
from statistics import mean
from typing import Any

from tombola.evaluation.intervals import mean_interval, normal_quantile
from tombola.evaluation.scores import Score
from tombola.results.decisions import Estimate
from tombola.results.formatting import SPARSITY, write_axis, write_share
from tombola.results.record import CellResult
from tombola.results.speed import Shipped, mean_shipped, mean_speedups
from tombola.results.statistics import all_equal
from tombola.shrink.sizes import Speedup
from tombola.tasks.metrics import is_share, merit

TICKET_SECTIONS = ("search", "draw", "retrain")
"""The sections of a recipe that define a ticket; all others it shares with the dense model."""


def estimate_scores(scores: Sequence[Score], metric: str) -> Estimate:
    """Summarise one score per seed; the interval of a share stays between 0 and 1."""
    values, errors = [score.value for score in scores], [score.stderr for score in scores]
    estimate = _estimate(values, errors, scores[0].interval())
    if is_share(metric) and 0 <= estimate.mean <= 1:
        return estimate.model_copy(update={"low": max(0.0, estimate.low), "high": min(1.0, estimate.high)})
    return estimate


def estimate_values(values: Sequence[float], errors: Sequence[float]) -> Estimate:
    """Summarise one value per seed, each with its standard error; the interval of a single run is normal."""
    half = normal_quantile(0.975) * mean(errors)
    return _estimate(values, errors, (values[0] - half, values[0] + half))


def _estimate(values: Sequence[float], errors: Sequence[float], alone: tuple[float, float]) -> Estimate:
    """Return mean, deviation and t interval; if all values are equal, the interval `alone` of a single run."""
    seeds, stderr = len(values), mean(errors)
    if all_equal(values):
        std = None if seeds == 1 else 0.0
        return Estimate(mean=values[0], std=std, stderr=stderr, low=alone[0], high=alone[1], seeds=seeds)
    interval = mean_interval(values)
    return Estimate(
        mean=interval.mean, std=interval.std, stderr=stderr, low=interval.low, high=interval.high, seeds=seeds
    )


def combined_error(errors: Iterable[float]) -> float:
    """Return the standard error of a sum of independent values."""
    return hypot(*errors)


@dataclass(frozen=True)
class Summary:
    """A variant at one grid point: cells that differ only in their seeds."""

    cells: tuple[CellResult, ...]

    @property
    def variant(self) -> str:
        """The recipe's variant."""
        return self.cells[0].variant

    @cached_property
    def axes(self) -> dict[str, Any]:
        """The value on every axis of the grid except the seed."""
        return {name: value for name, value in self.cells[0].axes.items() if name != "seed"}

    @cached_property
    def point(self) -> dict[str, Any]:
        """The variant and the axes, which identify the row."""
        return {"variant": self.variant, **self.axes}

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.cells)

    @cached_property
    def dense(self) -> bool:
        """Whether nothing was removed: the row is a baseline for tickets."""
        return all(cell.mask is None for cell in self.cells)

    @cached_property
    def sparsity(self) -> float:
        """The share of the prunable weights removed, averaged over seeds; 0 for a dense model."""
        return mean(cell.mask.weight_sparsity if cell.mask else 0.0 for cell in self.cells)

    @cached_property
    def scores(self) -> dict[str, Estimate]:
        """The headline score on every data set and under every attack that all seeds have."""
        return {
            on: estimate_scores(
                [next(iter(cell.scores[on].values())) for cell in self.cells], next(iter(scores))
            )
            for on, scores in self.cells[0].scores.items()
            if all(on in cell.scores for cell in self.cells)
        }

    @cached_property
    def metrics(self) -> dict[str, str]:
        """The headline metric on every data set."""
        return {on: next(iter(self.cells[0].scores[on])) for on in self.scores}

    def common_metrics(self, on: str) -> list[str]:
        """Return the metrics of all seeds on a data set, the headline first; a group may be missing in some."""
        first, *others = (cell.scores[on] for cell in self.cells)
        return [metric for metric in first if all(metric in other for other in others)]

    def merit(self, on: str) -> float:
        """Return the mean headline score on a data set, with a sign such that higher is better."""
        return merit(self.scores[on].mean, self.metrics[on])

    @cached_property
    def baseline_key(self) -> dict[str, Any]:
        """The axes that a ticket shares with its dense model: model, task, data, training."""
        return {name: value for name, value in self.axes.items() if name.split(".")[0] not in TICKET_SECTIONS}

    @cached_property
    def parameters(self) -> int | None:
        """The parameters of the whole model, if known."""
        cell = self.cells[0]
        if cell.mask is not None:
            return cell.mask.parameters
        return cell.measured.dense.parameters if cell.measured else None

    @cached_property
    def left(self) -> int | None:
        """The parameters that the mask keeps, averaged over seeds."""
        if self.parameters is None:
            return None
        removed = mean(cell.mask.total_sparsity if cell.mask else 0.0 for cell in self.cells)
        return round(self.parameters * (1 - removed))

    @cached_property
    def emptied(self) -> list[str]:
        """Matrices that the mask of some seed removes entirely."""
        return list(dict.fromkeys(name for cell in self.cells if cell.mask for name in cell.mask.emptied))

    @cached_property
    def speedup(self) -> dict[int, Speedup]:
        """The speed-up over the dense model by batch size, if measured."""
        return mean_speedups([cell.measured for cell in self.cells if cell.measured])

    @cached_property
    def shipped(self) -> Shipped | None:
        """The size and speed of the shipped model, if measured."""
        return mean_shipped([cell.measured for cell in self.cells if cell.measured])

    @cached_property
    def label(self) -> str:
        """The row's name in a sentence: the variant, its axes, its sparsity."""
        axes = [write_axis(axis, value) for axis, value in self.axes.items() if axis != SPARSITY]
        sparsity = "" if self.dense else f"{write_share(self.sparsity)} sparse"
        return " · ".join(filter(None, [self.variant, *axes, sparsity]))

    def shares_baseline(self, other: Summary) -> bool:
        """Return whether both are compared with the same dense model."""
        return self.baseline_key == other.baseline_key

    def meets(self, other: Summary) -> bool:
        """Return whether a comparison is fair: both are at one grid point, or one is the other's baseline."""
        if self.dense or other.dense:
            return self.shares_baseline(other)
        return self.axes == other.axes


def summarise(cells: Iterable[CellResult]) -> list[Summary]:
    """Group cells into the rows of the table, in the order of the cells."""
    groups: dict[str, list[CellResult]] = {}
    for cell in cells:
        axes = {name: value for name, value in cell.axes.items() if name != "seed"}
        groups.setdefault(json.dumps([cell.variant, axes], sort_keys=True), []).append(cell)
    return [Summary(tuple(group)) for group in groups.values()]


def by_baseline(rows: Iterable[Summary]) -> list[list[Summary]]:
    """Group the rows to compare with each other, by baseline key, in order."""
    groups: dict[str, list[Summary]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    return list(groups.values())


def baselines(rows: Sequence[Summary]) -> list[Summary | None]:
    """Return for each row the first dense model with its baseline key, or None."""
    dense: dict[str, Summary] = {}
    for row in rows:
        if row.dense:
            dense.setdefault(_key(row), row)
    return [dense.get(_key(row)) for row in rows]


def parameters_left(rows: Sequence[Summary]) -> list[int | None]:
    """Return the parameters left in each row; for a dense model all of them, taken from its tickets if not recorded."""
    sizes: dict[str, int] = {}
    for row in rows:
        if row.parameters is not None:
            sizes.setdefault(_key(row), row.parameters)
    return [row.left if row.left is not None else sizes.get(_key(row)) for row in rows]


def _key(row: Summary) -> str:
    return json.dumps(row.baseline_key, sort_keys=True)
