"""Decide whether a ticket is as good as the dense model. (BERT-Tickets, section 3)"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from tombola.results.decisions import Matching
from tombola.results.doubts import decided_by_error, first_of, level_of_constant, nothing_to_match
from tombola.results.statistics import at_least
from tombola.results.summary import Summary, by_baseline

if TYPE_CHECKING:
    from tombola.results.result import Result

Standing = Literal["strict", "within", "below"]


def standing(ticket: Summary, dense: Summary, on: str) -> Standing:
    """Compare a ticket with the dense model: not worse (`strict`), worse `within` the tolerance, or `below` it."""
    score, level = ticket.merit(on), dense.merit(on)
    if at_least(score, level):
        return "strict"
    return "within" if at_least(score, level - dense.scores[on].tolerance) else "below"


def match(result: Result, on: str) -> list[Matching]:
    """Return for each dense model and variant the sparsest ticket that matches on `on`."""
    matches = []
    for rows in by_baseline(row for row in result.summaries() if on in row.scores):
        tickets = [row for row in rows if not row.dense]
        for dense in (row for row in rows if row.dense):
            for variant in dict.fromkeys(row.variant for row in tickets):
                of_variant = [row for row in tickets if row.variant == variant]
                matches.append(_match(result, dense, of_variant, on))
    return matches


def _match(result: Result, dense: Summary, tickets: list[Summary], on: str) -> Matching:
    blocked = nothing_to_match(dense, on, result)
    within = None if blocked else sparsest(t for t in tickets if standing(t, dense, on) != "below")
    strict = None if blocked else sparsest(t for t in tickets if standing(t, dense, on) == "strict")
    notes = [blocked] if blocked else [decided_by_error(dense, on)]
    if within is not None and within.emptied:
        notes.append(f"the ticket's mask removes all of {first_of(within.emptied)}")
    if within is not None and level_of_constant(within, on) is not None:
        notes.append("the ticket is no better than a constant answer")
    return Matching(
        variant=tickets[0].variant,
        baseline_key=dense.baseline_key,
        dense=dense.variant,
        within=within.sparsity if within else None,
        strict=strict.sparsity if strict else None,
        speedup=within.speedup if within else {},
        note="; ".join(note for note in notes if note) or None,
    )


def sparsest(rows: Iterable[Summary]) -> Summary | None:
    """Return the sparsest row, or None if there are no rows."""
    return max(rows, key=lambda row: row.sparsity, default=None)
