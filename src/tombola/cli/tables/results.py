"""The table of a run or study: dense models and tickets, their scores, size and speed."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tombola.cli.tables.layout import Column, Grid
from tombola.cli.tables.models import scaled
from tombola.results.formatting import (
    SPARSITY,
    short_axis,
    short_targets,
    short_value,
    write_axes,
    write_estimate,
    write_metric,
    write_share,
    write_speedup,
)
from tombola.results.summary import Summary, parameters_left

if TYPE_CHECKING:
    from tombola.results.result import Result

NOTES = 6
"""The most notes below a table; the report shows all of them."""


def result_table(result: Result) -> Grid:
    """Return a table with a row for each variant and grid point, and columns for scores, size and speed."""
    rows = result.summaries()
    varying, constant = _axes(rows)
    short = short_targets(result.targets, result.tasks)
    keys = [
        Column("variant", [row.variant for row in rows], "left"),
        *(
            Column(short_axis(axis), [short_value(row.axes.get(axis, "")) for row in rows], "left")
            for axis in varying
        ),
        Column(
            "sparsity\n(prunable\nweights)",
            ["dense" if row.dense else write_share(row.sparsity) for row in rows],
        ),
    ]
    metrics, stated = _metrics(result, rows)
    values = [
        Column(
            short[on] + (f"\n{metrics[on]}" if metrics[on] else ""),
            [write_estimate(row.scores.get(on), row.metrics.get(on, "")) for row in rows],
        )
        for on in result.targets
    ]
    title = result.name + (f": {write_axes(constant)}" if constant else "")
    caption = [spread_caption(stated, {row.seeds for row in rows}), *_legend(result, short)]
    return Grid(title, keys, [*values, *_sizes(rows)], [*caption, *_speed_legend(rows), *notes_below(result)])


def _axes(rows: list[Summary]) -> tuple[list[str], dict[str, object]]:
    """Return the axes that distinguish rows, and those with a single value, which the title states."""
    values_by_axis: dict[str, list[object]] = {}
    for row in rows:
        for axis, value in row.axes.items():
            if axis != SPARSITY and value not in values_by_axis.setdefault(axis, []):
                values_by_axis[axis].append(value)
    constant = {axis: values[0] for axis, values in values_by_axis.items() if len(values) == 1}
    return [axis for axis in values_by_axis if axis not in constant], constant


def _metrics(result: Result, rows: list[Summary]) -> tuple[dict[str, str], str]:
    """Return the metric below each heading, and a word for the caption: the metric, if all data sets share one."""
    found = {
        on: list(dict.fromkeys(row.metrics[on] for row in rows if on in row.metrics))
        for on in result.datasets
    }
    every = list(dict.fromkeys(metric for metrics in found.values() for metric in metrics))
    if len(every) == 1:
        return dict.fromkeys(result.targets, ""), write_metric(every[0])
    return {on: "\n".join(map(write_metric, found.get(on, []))) for on in result.targets}, "scores"


def spread_caption(what: str, seeds: Collection[int]) -> str:
    """Return a caption that tells what the number after ± is.

    Args:
        what: What the table shows, e.g. its metric.
        seeds: The numbers of seeds of its rows.
    """
    if set(seeds) == {1}:
        return f"{what} ± standard error, one seed"
    over = f"{max(seeds)} seeds" if len(set(seeds)) == 1 else f"up to {max(seeds)} seeds"
    alone = "; ± standard error where there is one seed" if min(seeds) == 1 else ""
    return f"{what}, mean ± standard deviation over {over}{alone}"


def _legend(result: Result, short: dict[str, str]) -> list[str]:
    """Explain shortened names, and name the columns of attacks."""
    parts = [f"{name}: {on}" for on, name in short.items() if on in result.datasets and name != on]
    attacks = [on for on in result.targets if on not in result.datasets]
    parts += [f"{', '.join(attacks)}: accuracy under attack"] if attacks else []
    return ["; ".join(parts)] if parts else []


def _sizes(rows: list[Summary]) -> list[Column]:
    """Return columns for the parameters left, and for the size and speed of the shipped model."""
    left = parameters_left(rows)
    columns = []
    if any(left):
        columns.append(
            Column("parameters\nleft (whole\nmodel)", [scaled(number) if number else "" for number in left])
        )
    if any(row.shipped for row in rows):
        sizes = [scaled(row.shipped.bytes, "B") if row.shipped else "" for row in rows]
        columns.append(Column("on disk", sizes))
    batches = sorted({batch for row in rows for batch in row.speedup})
    for batch in batches:
        ratios = [write_speedup(row.speedup.get(batch)) for row in rows]
        columns.append(Column(f"speed-up,\nbatch {batch}", ratios))
    for batch in batches:
        columns.append(Column(f"ms, batch {batch}", [_milliseconds(row, batch) for row in rows]))
    return columns


def _milliseconds(row: Summary, batch: int) -> str:
    """Return the times behind a speed-up: dense model and ticket, timed in the same process."""
    if row.shipped is None or batch not in row.speedup or batch not in row.shipped.milliseconds:
        return ""
    dense, ticket = row.shipped.milliseconds[batch]
    return f"{dense:.3g} → {ticket:.3g}"


def _speed_legend(rows: list[Summary]) -> list[str]:
    if not any(row.speedup for row in rows):
        return []
    return ["speed-up: × as fast as dense, timed in turns, 95 % interval; ms: dense → ticket"]


def notes_below(result: Result) -> list[str]:
    """Return the notes on a result's reliability, as lines below its table."""
    more = len(result.notes) - NOTES
    return [
        *(f"note: {note}" for note in result.notes[:NOTES]),
        *([f"and {more} more notes in results.json"] if more > 0 else []),
    ]
