"""The result of sharing an encoder: every task without and with tickets, and their average, over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, mean
from typing import TYPE_CHECKING, Any

from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import WITH, WITHOUT
from tombola.results.decisions import SharingRow
from tombola.results.record import CellResult
from tombola.results.summary import combined_error, estimate_scores, estimate_values

if TYPE_CHECKING:
    from tombola.results.result import Result

AVERAGE = "average"


Pair = tuple[Score, Score]
"""A score without and with tickets."""


@dataclass(frozen=True)
class _Line:
    """One score of a task, without and with tickets, for each seed that has both."""

    on: str
    metric: str
    scores: dict[int, Pair]


@dataclass(frozen=True)
class _Task:
    """One task: its scores, and the share of parameters that its masks keep."""

    name: str
    lines: list[_Line]
    remaining: float

    def rows(self) -> list[SharingRow]:
        return [self._row(line) for line in self.lines]

    def _row(self, line: _Line) -> SharingRow:
        pairs = list(line.scores.values())
        return SharingRow(
            task=self.name,
            metric=line.metric,
            on=line.on,
            without=estimate_scores([without for without, _ in pairs], line.metric),
            shared=estimate_scores([shared for _, shared in pairs], line.metric),
            difference=estimate_values(
                [shared.value - without.value for without, shared in pairs],
                [combined_error((without.stderr, shared.stderr)) for without, shared in pairs],
            ),
            remaining=self.remaining,
        )

    def of_seed(self, seed: int, index: int) -> tuple[float, float]:
        """Return the mean of the scores of a seed, without (0) or with tickets (1), and its standard error."""
        own = [line.scores[seed][index] for line in self.lines]
        return fmean(one.value for one in own), combined_error(one.stderr for one in own) / len(own)


def share_rows(result: Result, on: str) -> list[SharingRow]:
    """Return the tasks in the order of the recipe, then their average, on one data set; empty for other results.

    A task shows the metrics that the recipe sets for it, or its headline metric. A task with its own data sets shows
    all of them in the table of the others' first data set. If no seed has all tasks, there is no average.
    """
    tasks = _tasks(result, on)
    return [*(row for task in tasks for row in task.rows()), *_average(tasks)]


def _tasks(result: Result, on: str) -> list[_Task]:
    cells = [cell for cell in result.cells if cell.variant in (WITHOUT, WITH)]
    found = []
    for name in dict.fromkeys(cell.axes.get("task") for cell in cells):
        own = [cell for cell in cells if cell.axes.get("task") == name]
        settings = _settings_of(result, own[0])
        wanted = [one for one in _data_sets(result, settings, on) if all(one in cell.scores for cell in own)]
        lines = [
            _Line(one, metric, both)
            for one in wanted
            for metric in settings.get("metrics") or [next(iter(own[0].scores[one]))]
            if (both := _pairs(own, one, metric))
        ]
        kept = [
            1 - cell.mask.parameter_sparsity if cell.mask else 1.0 for cell in own if cell.variant == WITH
        ]
        if name is not None and lines:
            found.append(_Task(str(name), lines, mean(kept)))
    return found


def _settings_of(result: Result, cell: CellResult) -> dict[str, Any]:
    """Return the recipe's `per_task` settings of a cell's task."""
    settings = (result.record.recipe.get("per_task") or {}).get(cell.recipe.get("task")) or {}
    return dict(settings)


def _data_sets(result: Result, settings: dict[str, Any], on: str) -> list[str]:
    """Return the data sets of a task in the table of `on`: `on`, or all its own in the first table."""
    own = (settings.get("evaluate") or {}).get("on")
    if own is None:
        return [on]
    first = (result.record.recipe.get("evaluate") or {}).get("on") or ["validation"]
    return list(own) if on == first[0] else []


def _pairs(cells: list[CellResult], on: str, metric: str) -> dict[int, Pair]:
    """Return the scores without and with tickets, for each seed that has both."""
    scores = {
        variant: {cell.seed: cell.scores[on][metric] for cell in cells if cell.variant == variant}
        for variant in (WITHOUT, WITH)
    }
    return {
        seed: (score, scores[WITH][seed]) for seed, score in scores[WITHOUT].items() if seed in scores[WITH]
    }


def _average(tasks: list[_Task]) -> list[SharingRow]:
    """Average the tasks' mean scores for each seed that all tasks have, then over seeds; empty without such a seed."""
    lines = [line for task in tasks for line in task.lines]
    seeds = [seed for line in lines[:1] for seed in line.scores if all(seed in one.scores for one in lines)]
    if not seeds:
        return []

    def of(index: int) -> tuple[list[float], list[float]]:
        found = [[task.of_seed(seed, index) for task in tasks] for seed in seeds]
        values = [fmean(value for value, _ in own) for own in found]
        return values, [combined_error(error for _, error in own) / len(own) for own in found]

    (without, without_errors), (shared, shared_errors) = of(0), of(1)
    metrics = {line.metric for line in lines}
    average = SharingRow(
        task=AVERAGE,
        metric=metrics.pop() if len(metrics) == 1 else None,
        without=estimate_values(without, without_errors),
        shared=estimate_values(shared, shared_errors),
        difference=estimate_values(
            [after - before for before, after in zip(without, shared, strict=True)],
            [combined_error(both) for both in zip(without_errors, shared_errors, strict=True)],
        ),
        remaining=mean(task.remaining for task in tasks),
    )
    return [average]
