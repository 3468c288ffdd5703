"""Compare several runs: the differences between their scores, paired by seed if they have the same seeds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError, UnknownName
from tombola.recipe.recipe import Recipe
from tombola.results.decisions import Estimate
from tombola.results.differences import Change, estimate_difference
from tombola.results.export import frame
from tombola.results.formatting import short_value, write_axis, write_difference, write_estimate
from tombola.results.result import Result
from tombola.results.summary import Summary

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ComparedRow:
    """A variant at one grid point, on one data set, in every run.

    Attributes:
        variant: The variant; if runs of one row each are compared, that of the first.
        axes: The value on each axis of the grids; None for a dense model's draw.
        on: The data set or attack.
        metric: The headline metric.
        sparsities: The sparsity in each run; None if a run has no such row.
        scores: The score in each run.
        changes: The differences of the other runs from the first.
    """

    variant: str
    axes: dict[str, Any]
    on: str
    metric: str
    sparsities: tuple[float | None, ...]
    scores: tuple[Estimate | None, ...]
    changes: tuple[Change | None, ...]

    @property
    def label(self) -> str:
        """The row's name in a sentence."""
        axes = [write_axis(axis, value) for axis, value in self.axes.items() if value is not None]
        return " · ".join(filter(None, [self.variant, *axes]))


@dataclass(frozen=True)
class ResultComparison:
    """Two or more results, row by row.

    Attributes:
        results: The results; the others are compared with the first.
    """

    results: tuple[Result, ...]

    @cached_property
    def names(self) -> list[str]:
        """The names of the runs, or their folders if names are equal."""
        names = [result.name for result in self.results]
        if len(set(names)) == len(names):
            return names
        folders = [result.folder.resolve() for result in self.results]
        short = [folder.name for folder in folders]
        return short if len(set(short)) == len(short) else [str(folder) for folder in folders]

    @cached_property
    def targets(self) -> list[str]:
        """The data sets and attacks that at least two runs have."""
        every = [on for result in self.results for on in result.targets]
        return [on for on in dict.fromkeys(every) if every.count(on) > 1]

    @cached_property
    def table(self) -> list[ComparedRow]:
        """A row for each variant, grid point and data set that at least two runs have."""
        keyed = [_rows_by_key(result, self._axes, alone=self._alone) for result in self.results]
        table = []
        for key in dict.fromkeys(key for by_key in keyed for key in by_key):
            rows = [by_key.get(key) for by_key in keyed]
            if sum(row is not None for row in rows) > 1:
                table += [row for on in self.targets if (row := self._compare(rows, on)) is not None]
        return table

    @cached_property
    def notes(self) -> list[str]:
        """Rows that only one run has, omitted data sets, and reasons to doubt the comparison."""
        notes = []
        keyed = [_rows_by_key(result, self._axes, alone=self._alone) for result in self.results]
        for name, rows in zip(self.names, keyed, strict=True):
            unmatched = [
                row.label for key, row in rows.items() if sum(key in by_key for by_key in keyed) == 1
            ]
            if unmatched:
                notes.append(f"only in {name}: {', '.join(unmatched)}")
        for on in self.targets:
            metrics = dict.fromkeys(result.headline(on) for result in self.results if on in result.targets)
            if len(metrics) > 1:
                notes.append(f"{on} is left out: its metrics differ ({', '.join(metrics)})")
        first = self.results[0]
        for name, result in zip(self.names[1:], self.results[1:], strict=True):
            tasks, listed = (list(map(short_value, compared.tasks)) for compared in (result, first))
            if set(tasks) != set(listed):  # by name: paths depend on the folder in which a run was started
                notes.append(f"{name} has another task: {', '.join(tasks)}, not {', '.join(listed)}")
        return notes

    def rows(self, table: Sequence[ComparedRow] | None = None) -> list[dict[str, Any]]:
        """Return a tidy table: a row for each variant, grid point, data set and run.

        Args:
            table: Some rows of `table`; by default all.
        """
        tidy = []
        for row in self.table if table is None else table:
            changes = (None, *row.changes)
            for name, sparsity, score, change in zip(
                self.names, row.sparsities, row.scores, changes, strict=True
            ):
                if score is not None:
                    estimate = change.estimate if change else None
                    tidy.append(
                        {
                            "variant": row.variant,
                            **row.axes,
                            "on": row.on,
                            "metric": row.metric,
                            "run": name,
                            "sparsity": sparsity,
                            **score.model_dump(),
                            "difference": estimate.mean if estimate else None,
                            "difference_low": estimate.low if estimate else None,
                            "difference_high": estimate.high if estimate else None,
                            "paired": change.paired if change else None,
                        }
                    )
        return tidy

    def frame(self) -> pandas.DataFrame:
        """Return the tidy table as a data frame."""
        return frame(self.rows())

    def __repr__(self) -> str:
        lines = [f"ResultComparison of {', '.join(self.names)}"]
        for row in self.table:
            scores = ", ".join(write_estimate(score, row.metric) or "–" for score in row.scores)
            changes = ", ".join(
                write_difference(change.estimate, row.metric) if change else "–" for change in row.changes
            )
            lines.append(f"  {row.label}, {row.on}: {scores}; difference {changes}")
        return "\n".join(lines)

    @cached_property
    def _alone(self) -> bool:
        """Whether every run has a single row; these rows are then compared whatever their variants."""
        return all(len(result.summaries()) == 1 for result in self.results)

    @cached_property
    def _axes(self) -> list[str]:
        """The axes of all runs, except the seed."""
        rows = [row for result in self.results for row in result.summaries()]
        return list(dict.fromkeys(axis for row in rows for axis in row.axes))

    def _compare(self, rows: Sequence[Summary | None], on: str) -> ComparedRow | None:
        first = next(row for row in rows if row is not None)
        scored = [row if row is not None and on in row.scores else None for row in rows]
        metrics = {row.metrics[on] for row in scored if row is not None}
        if sum(row is not None for row in scored) < 2 or len(metrics) > 1:
            return None
        return ComparedRow(
            variant=first.variant,
            axes=dict(zip(self._axes, _values(first, self._axes), strict=True)),
            on=on,
            metric=metrics.pop(),
            sparsities=tuple(row.sparsity if row else None for row in scored),
            scores=tuple(row.scores[on] if row else None for row in scored),
            changes=tuple(
                estimate_difference(scored[0], other, on) if scored[0] and other else None
                for other in scored[1:]
            ),
        )


def compare(*results: Result) -> ResultComparison:
    """Compare two or more results.

    Args:
        *results: The results; the others are compared with the first.
    """
    if len(results) < 2:
        raise TombolaError(
            "comparing needs two or more runs: pass their folders, e.g. tombola compare runs/a runs/b"
        )
    for one, other in itertools.combinations(results, 2):
        if one.folder.resolve() == other.folder.resolve() and one.record == other.record:
            raise TombolaError(f"{one.folder} is given twice: compare different runs")
    comparison = ResultComparison(tuple(results))
    if not comparison.targets:
        listed = "; ".join(
            f"{name}: {', '.join(result.targets) or 'none'}"
            for name, result in zip(comparison.names, results, strict=True)
        )
        raise TombolaError(
            f"the runs have no data set in common ({listed}): run them with the same evaluate.on"
        )
    if not comparison.table:
        raise TombolaError(
            f"no variant can be compared: {'; '.join(comparison.notes)}. Give the variants the same names in "
            "all runs, or compare runs with one variant each"
        )
    return comparison


def only(comparison: ResultComparison, on: Iterable[str]) -> list[ComparedRow]:
    """Return the rows of some data sets.

    Args:
        comparison: The comparison.
        on: Data sets or attacks; empty for all.
    """
    wanted = list(on)
    for name in wanted:
        if name not in comparison.targets:
            raise UnknownName("data set of these runs", name, comparison.targets)
    rows = [row for row in comparison.table if not wanted or row.on in wanted]
    if not rows:
        reasons = "; ".join(comparison.notes) or "only one run has a score"
        raise TombolaError(f"no variant can be compared on {', '.join(wanted)}: {reasons}")
    return rows


def _rows_by_key(result: Result, axes: Sequence[str], *, alone: bool) -> dict[str, Summary]:
    """Return the rows of a result by the key that matches them with rows of other results."""
    rows = result.summaries()
    if alone:
        return {"": rows[0]}
    return {json.dumps([row.variant, _values(row, axes)], default=str): row for row in rows}


def _values(row: Summary, axes: Sequence[str]) -> list[Any]:
    """Return the row's value on each axis; if its grid lacks the axis, the value in its recipe.

    A dense model has no draw, so its values on the draw's axes are None.
    """
    return [None if row.dense and axis.startswith("draw.") else _value(row, axis) for axis in axes]


def _value(row: Summary, axis: str) -> Any:
    if axis in row.axes:
        return row.axes[axis]
    part: Any = row.cells[0].recipe
    kind: Any = Recipe
    for key in axis.split("."):
        field = kind.model_fields.get(key) if hasattr(kind, "model_fields") else None
        default = field.default if field is not None else None
        part = part.get(key, default) if isinstance(part, dict) else getattr(part, key, None)
        kind = type(default)
    return part
