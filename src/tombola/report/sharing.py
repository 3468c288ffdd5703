"""Tasks that share an encoder: every task without and with tickets, and their average."""

from __future__ import annotations

from tombola.report.parts import Column, Estimate, Row, Section, Table
from tombola.report.rows import difference, score_format
from tombola.results import decisions
from tombola.results.result import Result


def sharing(result: Result) -> Section | None:
    """Return a table for each data set that tasks were scored on."""
    tables = [_table(on, rows) for on in result.datasets if (rows := result.sharing(on))]
    note = (
        "Every task trained together with the others: once with all parameters shared, once under its own ticket. "
        "Differences are between trainings with the same seed; parameters left are those of the encoder, including "
        "embeddings."
    )
    return Section("Sharing", note, tables) if tables else None


def _table(on: str, found: list[decisions.SharingRow]) -> Table:
    several = len({row.on for row in found if row.on is not None}) > 1
    columns = [
        Column("task"),
        *([Column("on")] if several else []),
        Column("metric"),
        Column("without tickets", "percent"),
        Column("with tickets", "percent"),
        Column("difference", "points"),
        Column("parameters left (encoder)", "percent"),
    ]
    rows = [
        Row(
            [
                row.task,
                *([row.on or ""] if several else []),
                row.metric or "mean of the metrics",
                _estimate(row.without, row.metric),
                _estimate(row.shared, row.metric),
                difference(row.difference, row.metric or ""),
                row.remaining,
            ]
        )
        for row in found
    ]
    return Table(f"sharing, {on}", columns, rows)


def _estimate(score: decisions.Estimate, metric: str | None) -> Estimate:
    return Estimate(score.mean, score.low, score.high, format=score_format(metric or ""))
