"""The phase transition of structured tickets, and the super ticket of a task. (Super Tickets, sections 3 and 5)

Phase I: the winning ticket is as good as the dense model. II: it is worse. III: it has collapsed: it is worse by more
than the dense model's spread, and not better than a random ticket of its size by more than the random ticket's spread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any, Literal

from tombola.foundations.settings import checked
from tombola.results.decisions import Estimate, PhasePoint, Phases, SuperTicket
from tombola.results.doubts import nothing_to_match
from tombola.results.record import CellResult
from tombola.results.statistics import at_least
from tombola.results.summary import TICKET_SECTIONS, Summary
from tombola.tasks.metrics import merit

if TYPE_CHECKING:
    from tombola.results.result import Result

Order = Literal["winning", "random", "losing"]
ORDERS: tuple[Order, ...] = ("winning", "random", "losing")

Axes = dict[str, Any]
"""What distinguishes the sets of curves of a grid: the task, settings of the search, the draw and the retraining."""

SIZES = tuple(f"draw.{key}" for key in ("sparsity", "heads", "ffns", "speedup", "latency", "parameters"))
"""The axes along which the tickets of one curve differ."""


@dataclass(frozen=True)
class _Row:
    """A row of the result with its order and size. `order` is None for a dense model."""

    order: Order | None
    sparsity: float
    axes: Axes
    summary: Summary
    to_target: bool = False
    """Whether the ticket was drawn to meet a speed-up, a latency or a share of the parameters."""

    @property
    def remaining(self) -> float:
        return 1 - mean(cell.mask.total_sparsity if cell.mask else 0.0 for cell in self.summary.cells)

    def belongs(self, axes: Axes) -> bool:
        """Return whether the row is part of the curves; a dense model is part of the curves of every search."""
        return self.axes == axes or (self.order is None and self.axes.items() <= axes.items())

    def score(self, on: str) -> Estimate:
        return self.summary.scores[on]


def find_phases(result: Result) -> list[Phases]:
    """Return the curves of winning, random and losing tickets with the phase of each size; empty for other results.

    Scores are those on the second data set of the recipe's own task, or on its only one. The super ticket is chosen on
    the first and reported on the second; a result with one data set has none. Neither attacks nor other data count,
    unless there is nothing else.
    """
    rows = list(_rows(result))
    phases = []
    for axes in _curves(rows):
        on_curve = [row for row in rows if row.belongs(axes)]
        scored = [on for on in result.datasets if all(on in row.summary.scores for row in on_curve)]
        own = [on for on in scored if result.condition(on) == "clean"]
        if scored:
            phases.append(_phases(result, on_curve, axes, own or scored))
    return phases


def _phases(result: Result, rows: list[_Row], axes: Axes, scored: list[str]) -> Phases:
    on = scored[min(1, len(scored) - 1)]
    dense = next(row for row in rows if row.order is None)
    note = nothing_to_match(dense.summary, on, result)
    metric = dense.summary.metrics[on]
    points = []
    for row in sorted((row for row in rows if row.order == "winning"), key=lambda row: row.sparsity):
        random = _score_of(rows, "random", row.sparsity, on)
        points.append(
            PhasePoint(
                sparsity=row.sparsity,
                remaining=row.remaining,
                winning=row.score(on),
                random=random,
                losing=_score_of(rows, "losing", row.sparsity, on),
                phase=None if note else _phase(dense.score(on), row.score(on), random, metric),
            )
        )
    chosen = None
    if len(scored) > 1 and not note and not _same_data(rows, *scored[:2]):
        chosen = _super_ticket(rows, *scored[:2])
    return Phases(
        on=on,
        metric=metric,
        axes=axes,
        dense=dense.score(on),
        points=points,
        super_ticket=chosen,
        note=note,
    )


def _score_of(rows: list[_Row], order: Order, sparsity: float, on: str) -> Estimate | None:
    """Return the score of tickets of an order and size, over all random masks; of several variants, the first."""
    same = [row.summary for row in rows if (row.order, row.sparsity) == (order, sparsity)]
    cells = [cell for summary in same if summary.variant == same[0].variant for cell in summary.cells]
    return Summary(tuple(cells)).scores[on] if cells else None


def _super_ticket(rows: list[_Row], choose_on: str, report_on: str) -> SuperTicket:
    """Return the winning ticket with the best mean on one data set, the smallest of equals, scored on another."""
    candidates = [row for row in rows if row.order in (None, "winning")]
    highest = max(row.summary.merit(choose_on) for row in candidates)
    equally_good = [row for row in candidates if at_least(row.summary.merit(choose_on), highest)]
    best = max(equally_good, key=lambda row: row.sparsity)
    return SuperTicket(
        sparsity=best.sparsity,
        remaining=best.remaining,
        chosen_on=choose_on,
        chosen=best.score(choose_on),
        reported_on=report_on,
        reported=best.score(report_on),
        tickets=[cell.ticket for cell in best.summary.cells if cell.ticket],
    )


def _same_data(rows: list[_Row], first: str, second: str) -> bool:
    """Return whether two names refer to the same data: a single stage scored both."""
    evaluations = rows[0].summary.cells[0].stages.evaluations
    return first in evaluations and evaluations[first] == evaluations.get(second)


def _phase(
    dense: Estimate, winning: Estimate, random: Estimate | None, metric: str
) -> Literal["I", "II", "III"]:
    score, level = merit(winning.mean, metric), merit(dense.mean, metric)
    if at_least(score, level):
        return "I"
    fallen = not at_least(score, level - dense.tolerance)
    collapsed = random is not None and at_least(merit(random.mean, metric) + random.tolerance, score)
    return "III" if fallen and collapsed else "II"


def _curves(rows: list[_Row]) -> list[Axes]:
    """Return the axes with a dense model and winning tickets; a single ticket drawn to a target makes no curve."""
    dense = [row for row in rows if row.order is None]
    curves: list[Axes] = []
    for row in rows:
        if (
            row.order != "winning"
            or row.axes in curves
            or not any(other.belongs(row.axes) for other in dense)
        ):
            continue
        sizes = {other.sparsity for other in rows if other.axes == row.axes and other.order == "winning"}
        if len(sizes) > 1 or not row.to_target:
            curves.append(row.axes)
    return curves


def _rows(result: Result) -> Iterator[_Row]:
    """Yield the rows that are dense or drawn by importance, except tickets damaged by a control."""
    for summary in result.summaries():
        cell = summary.cells[0]
        axes = {
            axis: value for axis, value in summary.axes.items() if axis.split(".")[0] not in TICKET_SECTIONS
        }
        search = cell.recipe.get("search")
        if search is None:
            yield _Row(None, 0.0, axes, summary)
        elif search["method"] == "importance" and cell.mask is not None and not _damaged(cell):
            yield _drawn_row(summary, axes)


def _drawn_row(summary: Summary, axes: Axes) -> _Row:
    from tombola.recipe.sections import DrawSettings
    from tombola.search.importance import Importance

    recipe = summary.cells[0].recipe
    search = checked(Importance, recipe["search"], "search")
    drawn = checked(DrawSettings, recipe.get("draw", {}), "draw")
    of_random = {"mask_number": 0, "preserve_layer_ratio": False}
    settings = search.model_copy(update={"order": "winning", **of_random}).canonical()
    point = {f"search.{name}": value for name, value in settings.items() if name != "method"}
    point |= {
        axis: value
        for axis, value in summary.axes.items()
        if axis.startswith(("draw.", "retrain.")) and axis not in SIZES
    }
    mask = summary.cells[0].mask
    share = mask.sparsity if mask is not None and (drawn.counts or drawn.target) else drawn.sparsity
    return _Row(search.order, share, axes | point, summary, to_target=drawn.target is not None)


def _damaged(cell: CellResult) -> bool:
    retrain, draw = cell.recipe.get("retrain") or {}, cell.recipe.get("draw") or {}
    return bool(draw.get("perturb")) or retrain.get("control") is not None
