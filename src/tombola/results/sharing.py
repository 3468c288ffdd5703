"""The result of sharing an encoder: every task without and with tickets, controls, and the average, over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, mean
from typing import TYPE_CHECKING, Any

from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import ALONE, CONTROLS, RANDOM, WITH, WITHOUT
from tombola.results.decisions import Estimate, SharingRow
from tombola.results.record import CellResult
from tombola.results.summary import combined_error, estimate_scores, estimate_values

if TYPE_CHECKING:
    from tombola.results.result import Result

AVERAGE = "average"
VARIANTS = (WITHOUT, WITH, *CONTROLS)

Value = tuple[float, float]
"""A score, or a mean of scores, with its standard error."""


@dataclass(frozen=True)
class _Line:
    """One score of a task, by variant and seed, for each seed with a training without and one with tickets."""

    on: str
    metric: str
    scores: dict[str, dict[int, Score]]

    def estimate(self, variant: str) -> Estimate | None:
        """Estimate the score of a variant; None if no seed has it."""
        scores = list(self.scores[variant].values())
        return estimate_scores(scores, self.metric) if scores else None

    def values(self, variant: str) -> dict[int, Value]:
        """Return the score of a variant and its standard error by seed."""
        return {seed: (score.value, score.stderr) for seed, score in self.scores[variant].items()}


@dataclass(frozen=True)
class _Task:
    """One task: its scores, and the share of parameters that its masks keep."""

    name: str
    lines: list[_Line]
    remaining: float

    def rows(self) -> list[SharingRow]:
        return [
            SharingRow(
                task=self.name,
                metric=line.metric,
                on=line.on,
                remaining=self.remaining,
                **_estimates(
                    {variant: line.estimate(variant) for variant in line.scores},
                    {variant: line.values(variant) for variant in line.scores},
                ),
            )
            for line in self.lines
        ]

    def values(self, variant: str) -> dict[int, Value]:
        """Return the mean of the task's scores by seed, for each seed that has all of them."""
        return _mean_by_seed([line.values(variant) for line in self.lines])


def _estimates(
    scores: Mapping[str, Estimate | None], values: Mapping[str, Mapping[int, Value]]
) -> dict[str, Any]:
    """Return the estimates of a row: every variant, and how much better tickets are, paired by seed."""
    return {
        "without": scores[WITHOUT],
        "shared": scores[WITH],
        "difference": _difference(values[WITH], values[WITHOUT]),
        "random": scores[RANDOM],
        "random_difference": _difference(values[WITH], values[RANDOM]),
        "alone": scores[ALONE],
    }


def _difference(values: Mapping[int, Value], others: Mapping[int, Value]) -> Estimate | None:
    """Estimate values − others over the seeds that have both; None without such a seed."""
    pairs = [(value, others[seed]) for seed, value in values.items() if seed in others]
    if not pairs:
        return None
    return estimate_values(
        [value - other for (value, _), (other, _) in pairs],
        [combined_error((error, other)) for (_, error), (_, other) in pairs],
    )


def _mean_by_seed(by_line: list[dict[int, Value]]) -> dict[int, Value]:
    """Average values for each seed that all of them have."""
    seeds = [seed for seed in by_line[0] if all(seed in values for values in by_line)]
    by_seed = {seed: [values[seed] for values in by_line] for seed in seeds}
    return {
        seed: (fmean(value for value, _ in all_), combined_error(error for _, error in all_) / len(all_))
        for seed, all_ in by_seed.items()
    }


def share_rows(result: Result, on: str) -> list[SharingRow]:
    """Return the tasks in the order of the recipe, then their average, on one data set; empty for other results.

    A task has a row for each metric that the recipe sets for it, or for its headline metric. A task with data sets of
    its own has all of them in the table of the first data set. Without a seed that has all tasks, there is no average.
    """
    tasks = _tasks(result, on)
    return [*(row for task in tasks for row in task.rows()), *_average(tasks)]


def _tasks(result: Result, on: str) -> list[_Task]:
    cells = [cell for cell in result.cells if cell.variant in VARIANTS]
    tasks = []
    for name in dict.fromkeys(cell.axes.get("task") for cell in cells):
        of_task = [cell for cell in cells if cell.axes.get("task") == name]
        settings = _settings_of(result, of_task[0])
        data_sets = [
            data_set
            for data_set in _data_sets(result, settings, on)
            if all(data_set in cell.scores for cell in of_task)
        ]
        lines = [
            _Line(data_set, metric, scores)
            for data_set in data_sets
            for metric in settings.get("metrics") or [next(iter(of_task[0].scores[data_set]))]
            if (scores := _scores(of_task, data_set, metric))[WITH]
        ]
        kept = [
            1 - cell.mask.parameter_sparsity if cell.mask else 1.0 for cell in of_task if cell.variant == WITH
        ]
        if name is not None and lines:
            tasks.append(_Task(str(name), lines, mean(kept)))
    return tasks


def _settings_of(result: Result, cell: CellResult) -> dict[str, Any]:
    """Return the recipe's `per_task` settings of a cell's task."""
    settings = (result.record.recipe.get("per_task") or {}).get(cell.recipe.get("task")) or {}
    return dict(settings)


def _data_sets(result: Result, settings: dict[str, Any], on: str) -> list[str]:
    """Return the data sets of a task in the table of `on`: `on`, or all its own in the first table."""
    data_sets = (settings.get("evaluate") or {}).get("on")
    if data_sets is None:
        return [on]
    first = (result.record.recipe.get("evaluate") or {}).get("on") or ["validation"]
    return list(data_sets) if on == first[0] else []


def _scores(cells: list[CellResult], on: str, metric: str) -> dict[str, dict[int, Score]]:
    """Return the scores by variant, for each seed with a training without and one with tickets."""
    by_variant = {
        variant: {cell.seed: cell.scores[on][metric] for cell in cells if cell.variant == variant}
        for variant in VARIANTS
    }
    both = by_variant[WITHOUT].keys() & by_variant[WITH].keys()
    return {
        variant: {seed: score for seed, score in scores.items() if seed in both}
        for variant, scores in by_variant.items()
    }


def _average(tasks: list[_Task]) -> list[SharingRow]:
    """Average the tasks' mean scores for each seed that all tasks have, then over seeds; empty without such a seed."""
    if not tasks:
        return []
    values = {variant: _mean_by_seed([task.values(variant) for task in tasks]) for variant in VARIANTS}
    if not values[WITH]:
        return []
    metrics = {line.metric for task in tasks for line in task.lines}
    average = SharingRow(
        task=AVERAGE,
        metric=metrics.pop() if len(metrics) == 1 else None,
        remaining=mean(task.remaining for task in tasks),
        **_estimates({variant: _estimate(value) for variant, value in values.items()}, values),
    )
    return [average]


def _estimate(values: Mapping[int, Value]) -> Estimate | None:
    return estimate_values(*zip(*values.values(), strict=True)) if values else None
