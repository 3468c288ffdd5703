"""What sharing came to: every task with and without tickets, and their average, over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from tombola.pipeline.share_planner import WITH, WITHOUT
from tombola.results.result import Result

AVERAGE = "average"


class Spread(NamedTuple):
    """A mean over seeds and their standard deviation, which one seed has not."""

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value for each seed."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else None)


@dataclass(frozen=True)
class Row:
    """A task, or the average over tasks: its score in both trainings, and how much of the model it keeps."""

    task: str
    metric: str
    without: Spread
    shared: Spread
    difference: Spread
    """Of the two trainings with the same seed."""
    remaining: float
    """Share of the encoder's parameters, embeddings included, that the task's mask keeps, a mean over seeds."""


class ShareResult(Result):
    """The outcome of sharing. Its cells are those of any result, one for each training, task and seed."""

    def rows(self, on: str) -> list[Row]:
        """The tasks in the order of the recipe, scored by their headline on one data set; last their average."""
        scores: dict[str, dict[str, dict[int, float]]] = {WITHOUT: {}, WITH: {}}
        kept: dict[str, list[float]] = {}
        metrics = {}
        for cell in self.cells:
            task, found = cell["axes"]["task"], cell["scores"][on]
            metrics[task] = next(iter(found))
            scores[cell["variant"]].setdefault(task, {})[cell["seed"]] = found[metrics[task]]["value"]
            if cell["mask"] is not None:
                kept.setdefault(task, []).append(cell["mask"]["remaining"])
        rows = [
            _row(task, metric, scores[WITHOUT][task], scores[WITH][task], fmean(kept[task]))
            for task, metric in metrics.items()
        ]
        without, shared = (_average(scores[variant]) for variant in (WITHOUT, WITH))
        return [*rows, _row(AVERAGE, "", without, shared, fmean(row.remaining for row in rows))]


def _row(
    task: str, metric: str, without: dict[int, float], shared: dict[int, float], remaining: float
) -> Row:
    differences = [shared[seed] - without[seed] for seed in without]
    return Row(
        task,
        metric,
        Spread.of(list(without.values())),
        Spread.of(list(shared.values())),
        Spread.of(differences),
        remaining,
    )


def _average(tasks: dict[str, dict[int, float]]) -> dict[int, float]:
    """The mean over tasks for each seed."""
    first = next(iter(tasks.values()))
    return {seed: fmean(own[seed] for own in tasks.values()) for seed in first}
