"""The table that compares several runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from tombola.cli.tables.layout import Column, Grid
from tombola.cli.tables.results import spread_caption
from tombola.results.formatting import (
    SPARSITY,
    short_axis,
    short_targets,
    short_value,
    write_difference,
    write_estimate,
    write_metric,
    write_share,
)

if TYPE_CHECKING:
    from tombola.results.comparing import ComparedRow, ResultComparison
    from tombola.results.differences import Change


def comparison_table(comparison: ResultComparison, rows: Sequence[ComparedRow]) -> Grid:
    """Return a table with a row for each variant and data set; columns for each run's score and difference."""
    tasks = [task for result in comparison.results for task in result.tasks]
    short = short_targets(comparison.targets, tasks)
    axes = [
        axis for axis in rows[0].axes if axis != SPARSITY and len({_value(row, axis) for row in rows}) > 1
    ]
    keys = [
        Column("variant", [row.variant for row in rows], "left"),
        *(Column(short_axis(axis), [_value(row, axis) for row in rows], "left") for axis in axes),
        Column("sparsity", [_sparsities(row) for row in rows]),
        Column("on", [short[row.on] for row in rows], "left"),
    ]
    values = []
    for place, name in enumerate(comparison.names):
        values.append(Column(name, [write_estimate(row.scores[place], row.metric) for row in rows]))
        if place:
            heading = f"{name} − {comparison.names[0]}\n(95 % interval)"
            values.append(Column(heading, [_difference(row.changes[place - 1], row.metric) for row in rows]))
    return Grid("", keys, values, [*_caption(rows), *(f"note: {note}" for note in comparison.notes)])


def _value(row: ComparedRow, axis: str) -> str:
    return "" if row.axes[axis] is None else short_value(row.axes[axis])


def _sparsities(row: ComparedRow) -> str:
    shares = [
        write_share(sparsity) if sparsity else "dense" for sparsity in row.sparsities if sparsity is not None
    ]
    return " / ".join(dict.fromkeys(shares))


def _difference(change: Change | None, metric: str) -> Text:
    if change is None:
        return Text("")
    return Text(write_difference(change.estimate, metric), style="bold" if change.clear else "")


def _caption(rows: Sequence[ComparedRow]) -> list[str]:
    seeds = {score.seeds for row in rows for score in row.scores if score}
    changes = [change for row in rows for change in row.changes if change]
    paired = "paired by seed" if all(change.paired for change in changes) else "not all paired: seeds differ"
    clear = "; bold: the interval excludes zero" if any(change.clear for change in changes) else ""
    metrics = ", ".join(dict.fromkeys(write_metric(row.metric) for row in rows))
    return [spread_caption(metrics, seeds), f"differences are {paired}{clear}"]
