"""Judge a recipe's claims by its results: each by the 95 % interval of a paired difference."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from tombola.results.decisions import Estimate, Judgement, Verdict
from tombola.results.differences import estimate_difference
from tombola.results.formatting import is_share, write_axes, write_interval
from tombola.results.summary import Summary
from tombola.tasks.metrics import lower_is_better

if TYPE_CHECKING:
    from tombola.recipe.claims import Claim
    from tombola.results.result import Result


def judge(result: Result) -> list[Judgement]:
    """Judge every claim at every grid point where both of its variants were scored."""
    return [
        judgement for name, claim in result.record.claims.items() for judgement in _judge(result, name, claim)
    ]


def write_judgement(judgement: Judgement) -> str:
    """Return the outcome of a claim as a sentence, with the difference that decided it."""
    where = "".join(f", {part}" for part in [write_axes(judgement.axes)] if part)
    compared = f"{judgement.variant} against {judgement.over} on {judgement.on}{where}"
    if judgement.difference is None:
        return f"{judgement.claim}: {judgement.verdict}; there are no scores for {compared}"
    by = f", claimed: {_margin(judgement)}" if judgement.by else ""
    seeds = "one seed" if judgement.difference.seeds == 1 else f"{judgement.difference.seeds} seeds"
    interval = write_interval(judgement.difference, judgement.metric)
    return f"{judgement.claim}: {judgement.verdict}; {compared}: {interval}{by}; {seeds}"


def _judge(result: Result, name: str, claim: Claim) -> list[Judgement]:
    on = claim.on or next(iter(result.targets), "")
    rows = [row for row in result.summaries() if on in row.scores and _is_at(row, claim.at)]
    judgements = []
    for row, other in product(
        (row for row in rows if row.variant == claim.variant),
        (row for row in rows if row.variant == claim.over),
    ):
        change = estimate_difference(other, row, on) if row.meets(other) else None
        if change is not None:
            metric = row.metrics[on]
            judgements.append(
                Judgement(
                    claim=name,
                    variant=claim.variant,
                    over=claim.over,
                    axes=other.axes if row.dense else row.axes,
                    on=on,
                    metric=metric,
                    by=claim.by,
                    difference=change.estimate,
                    verdict=_verdict(change.estimate, claim.by, metric),
                )
            )
    missing = Judgement(
        claim=name, variant=claim.variant, over=claim.over, on=on, by=claim.by, verdict="not tested"
    )
    return judgements or [missing]


def _is_at(row: Summary, at: Mapping[str, Any]) -> bool:
    """Return whether the row has these values on the axes that it has; a dense model lacks those of the draw."""
    return all(row.axes[axis] == value for axis, value in at.items() if axis in row.axes)


def _verdict(difference: Estimate, by: float, metric: str) -> Verdict:
    """Compare the interval of the gain with the smallest gain that counts."""
    low, high = difference.low, difference.high
    if lower_is_better(metric):
        low, high = -high, -low
    least = by / 100 if is_share(metric) else by
    if low > least:
        return "holds"
    return "does not hold" if high < least else "not shown"


def _margin(judgement: Judgement) -> str:
    """Write the difference that a claim needs at least, or at most if lower is better."""
    down = lower_is_better(judgement.metric)
    margin = f"at most {-judgement.by:+g}" if down else f"at least {judgement.by:+g}"
    return margin.replace("-", "−") + (" points" if is_share(judgement.metric) else "")
