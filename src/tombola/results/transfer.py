"""Transfer of masks: train tasks under the masks of others. (BERT-Tickets, section 4)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tombola.errors import RecipeError
from tombola.recipe.reading import Raw, without_claims_about
from tombola.results.decisions import Transfer
from tombola.results.formatting import short_value, write_axes
from tombola.results.statistics import at_least
from tombola.results.summary import Summary

if TYPE_CHECKING:
    from tombola.results.result import Result

DENSE, TRANSFERRED = "dense", "transferred"
TARGET, SOURCE = "task", "search.task"
"""The axes of a transfer: the task to train, and the task that its mask comes from."""


def transfer_grid(raw: Raw, sources: list[str], targets: list[str]) -> Raw:
    """Return the recipe whose grid has every target dense and under the mask of every source.

    They replace the recipe's own variants, and the claims about those.

    Args:
        raw: A recipe with a search.
        sources: Tasks to search masks on; by default the recipe's `search.task`, or the targets.
        targets: Tasks to train on; by default the recipe's `task`.
    """
    variants = raw.get("variants")
    variants = variants if isinstance(variants, dict) else {}
    search = raw.get("search") or (variants.get(TRANSFERRED) or {}).get("search")
    if not search:
        raise RecipeError("transfer needs a recipe with a search, whose masks are transferred")
    if not isinstance(search, dict):  # which is a mistake of its own
        return raw
    targets = targets or _as_list(raw.get("task"))
    sources = sources or _as_list(search.get("task")) or targets
    compared: Raw = {DENSE: {"search": None}, TRANSFERRED: {}}
    raw = without_claims_about(variants.keys() - compared, raw)
    return {**raw, "task": targets, "search": {**search, "task": sources}, "variants": compared}


def transfer_matrix(result: Result, on: str) -> Transfer | None:
    """Return the matrix of a result whose tickets vary over `task` and `search.task`; None for other results.

    Further axes of the tickets, such as the sparsity, make further rows; those of the training, further columns.
    """
    rows = [row for row in result.summaries() if on in row.scores and TARGET in row.axes]
    dense = {_target(row): row for row in rows if row.dense}
    tickets = {
        (_source(row), _target(row)): row
        for row in rows
        if not row.dense and SOURCE in row.axes and _target(row) in dense
    }
    if not tickets:
        return None
    sources = list(dict.fromkeys(source for source, _ in tickets))
    targets = list(dict.fromkeys(target for _, target in tickets))
    at_least_own, compared = {}, {}
    for source in sources:
        pairs = [
            (tickets[source, target], own)
            for target in targets
            if (source, target) in tickets
            and target.task != source.task
            and (own := tickets.get((_Key(target.task, source.further), target)))
        ]
        compared[source.label] = len(pairs)
        at_least_own[source.label] = sum(at_least(other.merit(on), own.merit(on)) for other, own in pairs)
    metrics = {dense[target].metrics[on] for target in targets}
    return Transfer(
        sources=[source.label for source in sources],
        targets=[target.label for target in targets],
        on=on,
        metric=metrics.pop() if len(metrics) == 1 else "",
        difference=[
            [_difference(tickets.get((source, target)), dense[target], on) for target in targets]
            for source in sources
        ],
        at_least_own=at_least_own,
        compared=compared,
    )


class _Key(NamedTuple):
    """A row or column of the matrix: a task, and a description of further axes."""

    task: str
    further: str

    @property
    def label(self) -> str:
        return ", ".join(part for part in (short_value(self.task), self.further) if part)


def _source(row: Summary) -> _Key:
    further = {axis: value for axis, value in row.axes.items() if axis not in (SOURCE, *row.baseline_key)}
    return _Key(row.axes[SOURCE], write_axes(further))


def _target(row: Summary) -> _Key:
    further = {axis: value for axis, value in row.baseline_key.items() if axis != TARGET}
    return _Key(row.axes[TARGET], write_axes(further))


def _difference(ticket: Summary | None, dense: Summary, on: str) -> float | None:
    return None if ticket is None else ticket.scores[on].mean - dense.scores[on].mean


def _as_list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []
