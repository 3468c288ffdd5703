"""Compare several runs: the scores of the same model in each run, and their differences."""

from __future__ import annotations

from tombola.report.parts import Column, Estimate, Row, Section, Table, Value
from tombola.report.rows import difference, estimate
from tombola.results.differences import estimate_difference
from tombola.results.formatting import write_axes
from tombola.results.result import Result
from tombola.results.summary import Summary

RUN = "run"
"""The axis that distinguishes the runs of a page."""


def side_by_side(result: Result) -> Section | None:
    """Return tables of the models that at least two runs have, with each run's difference from the first."""
    runs = list(dict.fromkeys(row.axes[RUN] for row in result.summaries() if RUN in row.axes))
    if len(runs) < 2:
        return None
    models = _models(result, runs)
    tables = [
        _table(result, on, runs, rows)
        for on in result.targets
        if (
            rows := {
                name: by_run
                for name, by_run in models.items()
                if sum(on in row.scores for row in by_run.values()) > 1
            }
        )
    ]
    note = (
        f"The same variant at the same grid point in each run, with 95 % intervals. Differences are from {runs[0]}, "
        "paired by seed where runs have seeds in common. The only model of a run is compared whatever its name."
    )
    return Section("Runs side by side", note, tables) if tables else None


def _models(result: Result, runs: list[str]) -> dict[str, dict[str, Summary]]:
    """Return the rows by model and run; the only model of a run is called `the model`."""
    models: dict[str, dict[str, Summary]] = {}
    for run in runs:
        rows = [row for row in result.summaries() if row.axes.get(RUN) == run]
        for row in rows:
            models.setdefault(_name(row) if len(rows) > 1 else "the model", {})[run] = row
    return models


def _name(row: Summary) -> str:
    axes = {axis: value for axis, value in row.axes.items() if axis != RUN}
    return " · ".join([row.variant, *([write_axes(axes)] if axes else [])])


def _table(result: Result, on: str, runs: list[str], models: dict[str, dict[str, Summary]]) -> Table:
    first, *others = runs
    columns = [
        Column("model"),
        *(Column(run, "percent") for run in runs),
        *(Column(f"{run} − {first}", "points") for run in others),
    ]
    rows = []
    for name, by_run in models.items():
        values: list[Value] = [name]
        values += [
            estimate(by_run[run], on) if run in by_run and on in by_run[run].scores else None for run in runs
        ]
        values += [_difference(by_run, first, run, on) for run in others]
        rows.append(Row(values))
    return Table(f"{on}, {result.headline(on)}", columns, rows)


def _difference(by_run: dict[str, Summary], first: str, run: str, on: str) -> Estimate | None:
    if first not in by_run or run not in by_run:
        return None
    change = estimate_difference(by_run[first], by_run[run], on)
    return difference(change.estimate, by_run[run].metrics[on]) if change is not None else None
