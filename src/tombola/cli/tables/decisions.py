"""The conclusions of a result: matching tickets, phases of structured tickets, transfer and sharing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tombola.cli.tables.layout import Column, Grid
from tombola.cli.tables.results import notes_below, spread_caption
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.results.claims import write_judgement
from tombola.results.decisions import Matching, Phases, Transfer
from tombola.results.formatting import (
    is_share,
    write_axes,
    write_estimate,
    write_metric,
    write_share,
    write_value,
)
from tombola.results.phases import ORDERS
from tombola.results.sharing import AVERAGE
from tombola.tasks.metrics import lower_is_better

if TYPE_CHECKING:
    from tombola.results.result import Result


def matching_lines(result: Result) -> list[str]:
    """Name the sparsest ticket of each variant that is as good as the dense model, one sentence each.

    If there are several dense models, those with the same outcome share a sentence.
    """
    if not result.targets:
        return []
    on = result.targets[0]
    rows = result.matching(on)
    several = len({row.dense for row in rows}) > 1
    sentences: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        name = row.variant + (f" ({write_axes(row.baseline_key)})" if row.baseline_key else "")
        dense = row.dense if several else "the dense model"
        before = "no ticket matches" if row.within is None else "matches"
        sentences.setdefault((name, before, _after(row, result.headline(on))), []).append(dense)
    return [
        f"{name}: {before} {' · '.join(dense)} on {on}{after}"
        for (name, before, after), dense in sentences.items()
    ]


def claim_lines(result: Result) -> list[str]:
    """Give the verdict on each claim, one sentence each."""
    return [f"claim {write_judgement(judgement)}" for judgement in result.claims()]


def _after(row: Matching, metric: str) -> str:
    """Describe up to which sparsity tickets match, how fast the sparsest one is, and any doubt."""
    parts = []
    if row.within is not None:
        worse = _worse(metric)
        strict = f"always {worse} its mean"
        if row.strict is not None:
            strict = f"not {worse} its mean up to {write_share(row.strict)}"
        parts.append(f" up to {write_share(row.within)} sparsity; {strict}")
        parts += [
            f"; {speedup.ratio:.2f} × as fast with batch {batch} ({speedup.low:.2f}–{speedup.high:.2f})"
            for batch, speedup in row.speedup.items()
        ]
    return "".join(parts) + (f" ({row.note})" if row.note else "")


def _worse(metric: str) -> str:
    return "above" if lower_is_better(metric) else "below"


def phase_table(result: Result, phases: Phases) -> Grid:
    """Return a table with a row for each size; columns for the three orders of tickets, and the phase."""
    points = phases.points
    keys = [
        Column("units\nremoved", ["dense", *(write_share(point.sparsity) for point in points)]),
        Column(
            "parameters\nleft (whole\nmodel)", ["100 %", *(write_share(point.remaining) for point in points)]
        ),
    ]
    values = [
        Column(
            order,
            [
                write_estimate(phases.dense, phases.metric) if order == "winning" else "",
                *(write_estimate(getattr(point, order), phases.metric) for point in points),
            ],
        )
        for order in ORDERS
        if any(getattr(point, order) for point in points)
    ]
    values.append(Column("phase", ["", *(point.phase or "–" for point in points)], "center"))
    where = f", {write_axes(phases.axes)}" if phases.axes else ""
    title = f"{result.name}: phase transition on {phases.on} ({write_metric(phases.metric)}){where}"
    return Grid(title, keys, values, _phase_caption(phases))


def _phase_caption(phases: Phases) -> list[str]:
    worse = _worse(phases.metric)
    lines = [
        f"I: not {worse} dense; II: {worse}; III: worse by more than dense's spread, and within the spread of random"
    ]
    if phases.note:
        return [f"note: {phases.note}"]
    best = phases.super_ticket
    if best is not None:
        size = f"{write_share(best.sparsity)} ({write_share(best.remaining)} of parameters left)"
        score = write_estimate(best.reported, phases.metric)
        lines.append(f"super ticket, chosen on {best.chosen_on}: {size}, {score} on {best.reported_on}")
    return lines


def transfer_table(matrix: Transfer) -> Grid:
    """Return a table of the scores under each source's mask minus the dense scores, with targets as columns."""
    columns = [
        Column(
            target,
            ["" if row[index] is None else _points(row[index], matrix.metric) for row in matrix.difference],
        )
        for index, target in enumerate(matrix.targets)
    ]
    columns.append(
        Column(
            "≥ own",
            [f"{matrix.at_least_own[source]} of {matrix.compared[source]}" for source in matrix.sources],
        )
    )
    unit = "points of " if is_share(matrix.metric) else ""
    metric = write_metric(matrix.metric) or "each target's metric"
    caption = [
        f"{unit}{metric} on {matrix.on} above the dense model",
        "≥ own: targets on which the mask is as good as the target's own",
    ]
    return Grid("transfer", [Column("mask of", matrix.sources, "left")], columns, caption)


def _points(difference: float | None, metric: str) -> str:
    return "" if difference is None else write_value(difference, metric, "+").removesuffix(" %")


def share_table(result: Result, on: str) -> Grid:
    """Return a table of the tasks: scores without and with tickets and of controls, differences, parameters left."""
    rows = result.sharing(on)
    random, alone = (any(getattr(row, name) for row in rows) for name in ("random", "alone"))
    metrics = {row.metric or "" for row in rows}
    keys = [Column("task", [row.task for row in rows], "left")]
    if len({row.on for row in rows if row.on is not None}) > 1:
        keys.append(Column("on", [row.on or "" for row in rows], "left"))
    if len(metrics) > 1:
        keys.append(Column("metric", [row.metric or "" for row in rows], "left"))

    def column(heading: str, name: str, sign: str = "") -> Column:
        return Column(heading, [write_estimate(getattr(row, name), row.metric or "", sign) for row in rows])

    values = [
        *([column(ALONE, "alone")] if alone else []),
        column(_two_lines(WITHOUT), "without"),
        *([column(_two_lines(RANDOM), "random")] if random else []),
        column(_two_lines(WITH), "shared"),
        column("with −\nwithout\ntickets" if random else "difference", "difference", "+"),
        *([column("with −\nwith random\ntickets", "random_difference", "+")] if random else []),
        Column("parameters\nleft\n(encoder)", [write_share(row.remaining) for row in rows]),
    ]
    spread = spread_caption("scores", {row.without.seeds for row in rows})
    explained = [
        *(["random tickets: as many units of each kind as the task's ticket"] if random else []),
        *(["alone: the task's single fine-tuning"] if alone else []),
    ]
    caption = [
        f"{spread}; parameters left of the encoder, embeddings included",
        *(["; ".join(explained)] if explained else []),
        *notes_below(result),
    ]
    sections = [index for index, row in enumerate(rows) if row.task == AVERAGE]
    metric = f" ({write_metric(metrics.pop())})" if len(metrics) == 1 else ""
    return Grid(f"{result.name}, {on}{metric}", keys, values, caption, sections)


def _two_lines(variant: str) -> str:
    return variant.replace(" tickets", "\ntickets")
