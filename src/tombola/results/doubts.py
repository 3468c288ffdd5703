"""Reasons to doubt a result: models that learned nothing, seeds without effect, masks that block the signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tombola.evaluation.intervals import normal_quantile
from tombola.results.formatting import write_value
from tombola.results.summary import Summary, by_baseline
from tombola.tasks.metrics import merit

if TYPE_CHECKING:
    from tombola.results.result import Result

NOT_LEARNED = "the dense model has not learned the task, so there is nothing to match"
AT_CHANCE = "the dense model is no better than a constant answer, so there is nothing to match"
NOTHING_LEFT = "the dense model gets nothing right under attack, so there is nothing to match"
SAME_SCORES = "all seeds of the dense model score the same, so the standard error of the score decides"


def notes(result: Result) -> list[str]:
    """Return the reasons to doubt the numbers, one sentence each."""
    rows = result.summaries()
    return [
        *_constant_answers(rows, result),
        *_failed_seeds(rows, result),
        *_missing_seeds(rows),
        *_equal_scores(rows),
        *_blocked(rows),
        *_busy(rows),
        *dict.fromkeys(note for cell in result.cells for note in cell.notes),
    ]


def level_of_constant(row: Summary, on: str) -> float | None:
    """Return the score of the best constant answer if the row is not significantly better, else None."""
    constants = [cell.constants[on] for cell in row.cells if on in cell.constants]
    if not constants or on not in row.scores:
        return None
    constant = max(constants, key=lambda value: merit(value, row.metrics[on]))
    error = normal_quantile(0.975) * row.scores[on].stderr
    return None if row.merit(on) > merit(constant, row.metrics[on]) + error else constant


def nothing_to_match(dense: Summary, on: str, result: Result) -> str | None:
    """Return why tickets cannot be compared with this dense model, or None."""
    clean = [name for name in dense.scores if result.condition(name) == "clean"]
    if any(level_of_constant(dense, name) is not None for name in clean[:1]):
        return NOT_LEARNED
    if result.condition(on) == "under attack" and dense.scores[on].mean == 0:
        return NOTHING_LEFT
    return AT_CHANCE if level_of_constant(dense, on) is not None else None


def decided_by_error(dense: Summary, on: str) -> str | None:
    """Return a note if several seeds score the same, so that their deviation cannot decide."""
    return SAME_SCORES if dense.scores[on].std == 0 else None


def _constant_answers(rows: Sequence[Summary], result: Result) -> Iterator[str]:
    """Name the models that learned nothing: each dense model in a sentence, all tickets in one."""
    for on in result.datasets:
        tickets = []
        for row in rows:
            constant = level_of_constant(row, on)
            if constant is None:
                continue
            if not row.dense:
                tickets.append(row.label)
                continue
            clean = result.condition(on) == "clean"
            yield (
                f"{row.label} {'has not learned the task' if clean else 'is no better than chance'}: "
                f"{write_value(row.scores[on].mean, row.metrics[on])} on {on}, where a constant answer scores "
                f"{write_value(constant, row.metrics[on])}"
            )
        if tickets:
            yield f"no better than a constant answer on {on}: {first_of(tickets, '; ')}"


def _failed_seeds(rows: Sequence[Summary], result: Result) -> Iterator[str]:
    """Name the failed seeds of otherwise good rows: they may explain a low mean or a wide spread."""
    for row in rows:
        for on in (name for name in row.scores if result.condition(name) == "clean"):
            if row.seeds == 1 or level_of_constant(row, on) is not None:
                continue
            failed = [
                str(cell.seed) for cell in row.cells if level_of_constant(Summary((cell,)), on) is not None
            ]
            if failed:
                seeds = f"seed {failed[0]} is" if len(failed) == 1 else f"seeds {', '.join(failed)} are"
                yield f"{row.label}: {seeds} no better than a constant answer on {on}, of {row.seeds} seeds"


def _missing_seeds(rows: Sequence[Summary]) -> Iterator[str]:
    """Name rows with missing seeds: their means are less comparable."""
    for group in by_baseline(rows):
        most = max(row.seeds for row in group)
        fewer = [f"{row.label} ({row.seeds})" for row in group if row.seeds < most]
        if fewer:
            yield f"fewer seeds than the {most} of other rows: {first_of(fewer, '; ')}"


def first_of(names: Sequence[str], separator: str = ", ") -> str:
    """Return the first three names, and the number of the rest."""
    more = f"{separator}and {len(names) - 3} more" if len(names) > 3 else ""
    return separator.join(names[:3]) + more


def _equal_scores(rows: Iterable[Summary]) -> Iterator[str]:
    for row in rows:
        same = [on for on, score in row.scores.items() if score.std == 0]
        if same:
            yield f"{row.label}: all {row.seeds} seeds score the same on {', '.join(same)}"


def _blocked(rows: Iterable[Summary]) -> Iterator[str]:
    for row in rows:
        if row.emptied:
            yield f"{row.label}: the mask removes all of {first_of(row.emptied)}, so no signal passes there"


def _busy(rows: Iterable[Summary]) -> Iterator[str]:
    busy: dict[str, list[str]] = {}
    for row in rows:
        reasons: dict[str, list[str]] = {}
        for size, ratio in row.speedup.items():
            if ratio.busy:
                reasons.setdefault(ratio.busy, []).append(f"{size}")
        for reason, sizes in reasons.items():
            some = "" if len(sizes) == len(row.speedup) else f" (batch {', '.join(sizes)})"
            busy.setdefault(reason, []).append(row.label + some)
    for reason, labels in busy.items():
        yield f"the speed-up of {', '.join(labels)} is uncertain: {reason}"
