"""The conclusion of a result in one sentence: the best ticket, its sparsity, scores and speed, and the seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tombola.foundations.sequences import listed
from tombola.results.differences import estimate_difference
from tombola.results.doubts import level_of_constant, nothing_to_match
from tombola.results.formatting import (
    short_value,
    write_axes,
    write_interval,
    write_share,
    write_value,
)
from tombola.results.matching import sparsest, standing
from tombola.results.summary import Summary, by_baseline

if TYPE_CHECKING:
    from tombola.results.result import Result

GROUPS = 3
"""The most comparisons, each with its own dense model, in a sentence; tables show all."""


def conclude(result: Result) -> str:
    """Conclude a result in a sentence: a compression's verdict, the gain of sharing or transfer, or the best ticket."""
    if not result.cells:
        return ""
    return result.record.verdict or _sharing(result) or _transfer(result) or _tickets(result)


def _sharing(result: Result) -> str:
    rows = result.sharing()
    if not rows:
        return ""
    average, tasks = rows[-1], len({row.task for row in rows[:-1]})
    if average.on is not None:
        return "No seed has the scores of all tasks, so there is no average."
    metric = average.metric or ""
    seeds = average.difference.seeds
    others = [
        f"{write_value(average.without.mean, metric)} without tickets ({write_interval(average.difference, metric)})"
    ]
    if average.random is not None and average.random_difference is not None:
        gain = write_interval(average.random_difference, metric)
        others.append(
            f"{write_value(average.random.mean, metric)} with random tickets of the same size ({gain})"
        )
    if average.alone is not None:
        others.append(f"{write_value(average.alone.mean, metric)} for tasks fine-tuned alone")
    return (
        f"Sharing one encoder under tickets gives {write_value(average.shared.mean, metric)} on average over {tasks} "
        f"tasks, against {listed(others)}; each ticket keeps {write_share(average.remaining)} of the encoder's "
        f"parameters on average. {_seeds(seeds)}."
    )


def _transfer(result: Result) -> str:
    matrix = result.transfer()
    if matrix is None or not sum(matrix.compared.values()):
        return ""
    good, all_ = sum(matrix.at_least_own.values()), sum(matrix.compared.values())
    seeds = max(row.seeds for row in result.summaries())
    return (
        f"Masks from {len(matrix.sources)} source tasks, trained on {len(matrix.targets)} target tasks: {good} of "
        f"{all_} transferred masks are at least as good as the target's own mask on {matrix.on}. {_seeds(seeds)}."
    )


def _tickets(result: Result) -> str:
    groups = by_baseline(result.summaries())
    if len(groups) == 1:
        return _group(result, groups[0])
    if all(len(group) == 1 for group in groups) and (on := _common_data(result, groups)):
        return _one_by_one(result, [row for (row,) in groups], on)
    sentences = [f"{write_axes(group[0].baseline_key)}: {_group(result, group)}" for group in groups[:GROUPS]]
    more = len(groups) - GROUPS
    return " ".join([*sentences, *([f"And {more} more below."] if more > 0 else [])])


def _common_data(result: Result, groups: list[list[Summary]]) -> str | None:
    """Return the first data set that all rows were scored on; None if there is none, or if their tasks differ."""
    rows = [row for group in groups for row in group]
    if len({short_value(cell.recipe.get("task")) for row in rows for cell in row.cells}) > 1:
        return None
    return next((on for on in result.targets if all(on in row.scores for row in rows)), None)


def _one_by_one(result: Result, rows: list[Summary], on: str) -> str:
    """Compare models without a common dense model, each with the first."""
    first, *others = rows
    sentences = [
        f"{_full_name(row)} against {_full_name(first)} on {on}: {_figures(result, row, first, on)}."
        for row in others[:GROUPS]
    ]
    more = len(others) - GROUPS
    seeds = _seeds(min(row.seeds for row in rows))
    return " ".join([*sentences, *([f"And {more} more below."] if more > 0 else []), f"{seeds}."])


def _full_name(row: Summary) -> str:
    """Return the row's name among rows of other baselines."""
    values = [short_value(value) for value in row.baseline_key.values()]
    return " · ".join(dict.fromkeys([row.variant, *values]))


def _group(result: Result, rows: list[Summary]) -> str:
    """Conclude on a dense model and its tickets; either may be missing."""
    on = next((name for name in result.targets if any(name in row.scores for row in rows)), None)
    scored = [row for row in rows if on in row.scores]
    if on is None or not scored:
        return "No model was scored."
    dense = next((row for row in scored if row.dense), None)
    tickets = [row for row in scored if not row.dense]
    if dense is None or not tickets:
        return _alone(result, max(scored, key=lambda row: row.merit(on)), on, len(scored))
    blocked = nothing_to_match(dense, on, result)
    if blocked:
        level = write_value(dense.scores[on].mean, dense.metrics[on])
        return f"{_capital(blocked)} ({dense.metrics[on]} {level} on {on}). {_seeds(dense.seeds)}."
    matching = sparsest(row for row in tickets if standing(row, dense, on) != "below")
    if matching is not None:
        return _compared(result, matching, dense, on, "matches the dense model")
    best = max(tickets, key=lambda row: (row.merit(on), row.sparsity))
    return "No ticket matches the dense model. " + _compared(result, best, dense, on, "comes closest")


def _compared(result: Result, ticket: Summary, dense: Summary, on: str, what: str) -> str:
    doubt = " Its mask removes whole matrices, through which no signal passes." if ticket.emptied else ""
    if level_of_constant(ticket, on) is not None:
        doubt += " It is no better than a constant answer."
    seeds = _seeds(min(ticket.seeds, dense.seeds))
    return f"{_named(ticket)} {what} on {on}: {_figures(result, ticket, dense, on)}. {seeds}.{doubt}"


def _figures(result: Result, row: Summary, other: Summary, on: str) -> str:
    """Compare two models: the score with its difference, the speed-up, other data and attacks."""
    metric = row.metrics[on]
    change = estimate_difference(other, row, on)
    interval = f" ({write_interval(change.estimate, metric)})" if change is not None else ""
    parts = [f"{metric} {_pair(row, other, on)}{interval}"]
    parts += [
        f"{speedup.ratio:.2f} times as fast with batch {batch}{' (uncertain)' if speedup.busy else ''}"
        for batch, speedup in list(row.speedup.items())[:1]
    ]
    for name in result.targets:
        condition = result.condition(name)
        if name != on and condition != "clean" and name in row.scores and name in other.scores:
            where = "under" if condition == "under attack" else "on"
            parts.append(f"{where} {name} {_pair(row, other, name)}")
    return "; ".join(parts)


def _alone(result: Result, row: Summary, on: str, models: int) -> str:
    """Describe a model without a counterpart to compare it with."""
    score, metric = row.scores[on], row.metrics[on]
    parts = [
        f"{metric} {write_value(score.mean, metric)} on {on} ({_between(score.low, score.high, metric)})"
    ]
    for name, other in row.scores.items():
        if name != on and result.condition(name) != "clean":
            where = "under" if result.condition(name) == "under attack" else "on"
            parts.append(f"{write_value(other.mean, row.metrics[name])} {where} {name}")
    name = f"Best of {models} models: {_named(row)}" if models > 1 else _named(row)
    against = "ticket" if row.dense else "dense model"
    return f"{name}: {', '.join(parts)}; no {against} to compare with. {_seeds(row.seeds)}."


def _named(row: Summary) -> str:
    own = {axis: value for axis, value in row.axes.items() if axis not in row.baseline_key}
    axes = write_axes({axis: value for axis, value in own.items() if axis != "draw.sparsity"})
    name = row.variant + (f" ({axes})" if axes else "")
    if row.dense:
        return name
    ticket = "The ticket" if name == "ticket" else f"The ticket {name}"
    return f"{ticket} with {write_share(row.sparsity)} of the prunable weights removed"


def _pair(ticket: Summary, dense: Summary, on: str) -> str:
    values = [write_value(row.scores[on].mean, row.metrics[on]) for row in (ticket, dense)]
    return " against ".join(values)


def _between(low: float, high: float, metric: str) -> str:
    ends = (write_value(end, metric).removesuffix(" %") for end in (low, high))
    return f"95 %: {' to '.join(ends)}"


def _seeds(count: int) -> str:
    return "One seed" if count == 1 else f"{count} seeds"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
