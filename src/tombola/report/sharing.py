"""Tasks that share an encoder: every task without and with tickets, controls, and the average."""

from __future__ import annotations

from collections.abc import Mapping

from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
from tombola.report.parts import Column, Estimate, Row, Section, Table
from tombola.report.rows import difference, score_format
from tombola.results import decisions
from tombola.results.result import Result


def sharing(runs: Mapping[str, Result]) -> Section | None:
    """Return a table for each run and each data set that tasks were scored on."""
    by_table = {
        f"{name if len(runs) > 1 else 'sharing'}, {on}": rows
        for name, result in runs.items()
        for on in result.datasets
        if (rows := result.sharing(on))
    }
    rows = [row for rows in by_table.values() for row in rows]
    notes = [
        "All tasks are trained together, once with all parameters shared and once with each task under its own ticket.",
        *(
            ["Random tickets remove as many units of each kind as the task's own, drawn at random."]
            if any(row.random is not None for row in rows)
            else []
        ),
        *(["Alone: the task's single fine-tuning."] if any(row.alone is not None for row in rows) else []),
        "Differences are paired by seed. Parameters left are those of the encoder, including embeddings.",
    ]
    tables = [_table(name, rows) for name, rows in by_table.items()]
    return Section("Sharing", " ".join(notes), tables) if tables else None


def _table(name: str, tasks: list[decisions.SharingRow]) -> Table:
    several = len({row.on for row in tasks if row.on is not None}) > 1
    alone = any(row.alone is not None for row in tasks)
    random = any(row.random is not None for row in tasks)
    columns = [
        Column("task"),
        *([Column("on")] if several else []),
        Column("metric"),
        *([Column(ALONE, "percent")] if alone else []),
        Column(WITHOUT, "percent"),
        *([Column(RANDOM, "percent")] if random else []),
        Column(WITH, "percent"),
        Column("with − without tickets" if random else "difference", "points"),
        *([Column("with − with random tickets", "points")] if random else []),
        Column("parameters left (encoder)", "percent"),
    ]
    rows = [
        Row(
            [
                row.task,
                *([row.on or ""] if several else []),
                row.metric or "mean of the metrics",
                *([_estimate(row.alone, row.metric)] if alone else []),
                _estimate(row.without, row.metric),
                *([_estimate(row.random, row.metric)] if random else []),
                _estimate(row.shared, row.metric),
                difference(row.difference, row.metric or ""),
                *([_gain(row)] if random else []),
                row.remaining,
            ]
        )
        for row in tasks
    ]
    return Table(name, columns, rows)


def _gain(row: decisions.SharingRow) -> Estimate | None:
    return None if row.random_difference is None else difference(row.random_difference, row.metric or "")


def _estimate(score: decisions.Estimate | None, metric: str | None) -> Estimate | None:
    if score is None:
        return None
    return Estimate(score.mean, score.low, score.high, format=score_format(metric or ""))
