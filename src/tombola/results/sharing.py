"""What sharing an encoder came to: every task without and with tickets, and their average, over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, mean
from typing import TYPE_CHECKING

from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import WITH, WITHOUT
from tombola.results.record import SharingRow
from tombola.results.summary import combined_error, estimate_scores, estimate_values

if TYPE_CHECKING:
    from tombola.results.result import Result

AVERAGE = "average"


@dataclass(frozen=True)
class _Task:
    """One task: its score without and with tickets for each seed that has both, and what its masks keep."""

    name: str
    metric: str
    scores: dict[int, tuple[Score, Score]]
    remaining: float

    def row(self) -> SharingRow:
        pairs = list(self.scores.values())
        return SharingRow(
            task=self.name,
            metric=self.metric,
            without=estimate_scores([without for without, _ in pairs]),
            shared=estimate_scores([shared for _, shared in pairs]),
            difference=estimate_values(
                [shared.value - without.value for without, shared in pairs],
                [combined_error((without.stderr, shared.stderr)) for without, shared in pairs],
            ),
            remaining=self.remaining,
        )


def share_rows(result: Result, on: str) -> list[SharingRow]:
    """The tasks in the order of the recipe by their headline scores, then their average.

    Empty for a result that is not of sharing.
    """
    tasks = _tasks(result, on)
    return [*(task.row() for task in tasks), _average(tasks)] if tasks else []


def _tasks(result: Result, on: str) -> list[_Task]:
    cells = [cell for cell in result.cells if cell.variant in (WITHOUT, WITH) and on in cell.scores]
    found = []
    for name in dict.fromkeys(cell.axes.get("task") for cell in cells):
        own = [cell for cell in cells if cell.axes.get("task") == name]
        headline = next(iter(own[0].scores[on]))
        scores = {
            variant: {cell.seed: cell.scores[on][headline] for cell in own if cell.variant == variant}
            for variant in (WITHOUT, WITH)
        }
        both = {
            seed: (score, scores[WITH][seed])
            for seed, score in scores[WITHOUT].items()
            if seed in scores[WITH]
        }
        kept = [
            1 - cell.mask.parameter_sparsity if cell.mask else 1.0 for cell in own if cell.variant == WITH
        ]
        if name is not None and both:
            found.append(_Task(str(name), headline, both, mean(kept)))
    return found


def _average(tasks: list[_Task]) -> SharingRow:
    """The mean over tasks for each seed that all tasks have, then over seeds."""
    seeds = [seed for seed in tasks[0].scores if all(seed in task.scores for task in tasks)]
    pairs = {seed: [task.scores[seed] for task in tasks] for seed in seeds}

    def of(index: int) -> tuple[list[float], list[float]]:
        values = [fmean(pair[index].value for pair in own) for own in pairs.values()]
        errors = [combined_error(pair[index].stderr for pair in own) / len(own) for own in pairs.values()]
        return values, errors

    (without, without_errors), (shared, shared_errors) = of(0), of(1)
    metrics = {task.metric for task in tasks}
    return SharingRow(
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
