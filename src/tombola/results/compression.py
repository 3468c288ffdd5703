"""The result of a compression: original and ticket compared, and a verdict in one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tombola.errors import TombolaError
from tombola.evaluation.intervals import paired_interval
from tombola.foundations.sequences import listed
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.stages.fit import FitStage
from tombola.recipe.drawing import DrawSettings
from tombola.results.doubts import nothing_to_match
from tombola.results.formatting import is_share, write_value
from tombola.results.record import CellResult
from tombola.results.result import Result
from tombola.results.statistics import at_least
from tombola.tasks.metrics import lower_is_better

if TYPE_CHECKING:
    from tombola.store.store import Store

ORIGINAL, TICKET = "original", "ticket"
CLEARLY_BELOW = 0.95
"""Share of the requested speed-up below which it counts as missed: a draw fits it to a few per cent."""


@dataclass(frozen=True)
class Change:
    """A difference between two models on the same examples, ticket minus original.

    Attributes:
        mean: The difference.
        low: The lower end of its paired 95 % interval over examples.
        high: The upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Compression:
    """A finished compression.

    Attributes:
        result: All cells: original and ticket, in transformers and in ONNX.
        model: The folder of the ticket, which transformers opens without Tombola.
        within: Accepted loss, in points of the headline score; in percent for a perplexity.
        clean: The difference in accuracy on the task's own data; None if accuracy is not the headline metric.
        verdict: The outcome in a sentence.
        notes: Facts inferred from the data.
    """

    result: Result
    model: Path
    within: float
    clean: Change | None
    verdict: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        _, *rows = repr(self.result).splitlines()
        return "\n".join([f"Compression: {self.verdict} ({self.model})", *rows])

    def cell(self, variant: str, runtime: str = "transformers") -> CellResult:
        """Return the cell of a variant in a runtime."""
        return _cell(self.result, variant, runtime)


def judge(
    result: Result, store: Store, within: float, model: Path, notes: tuple[str, ...] = ()
) -> Compression:
    """Compare the ticket with the original, and save the verdict in the result's file.

    Args:
        result: The result of a compression.
        store: The store with the predictions of its evaluations.
        within: Accepted loss, in points of the headline score.
        model: The folder of the ticket.
        notes: Facts inferred from the data.
    """
    on = result.datasets[0]
    clean = _change(result, store, on) if result.headline(on) == "accuracy" else None
    verdict = _verdict(result, on, clean, within)
    if is_main():
        result.record = result.record.model_copy(update={"verdict": verdict})
        result.save()
    return Compression(result, model, within, clean, verdict, notes)


def chosen_speedup(result: Result, on: str, within: float) -> float:
    """Return the largest speed-up whose ticket loses at most `within` points on a data set.

    Speed-ups that no ticket of the model can reach are skipped.

    Raises:
        TombolaError: If every ticket loses more, or no ticket was drawn.
    """
    failed = [failure for failure in result.failures if not failure.stage.startswith(f"{FitStage.kind}/")]
    if failed or not any(cell.variant == TICKET for cell in result.cells):
        first = (failed or result.failures)[0]
        raise TombolaError(f"{first.label}: {first.reason.rstrip('.')}; its log: {first.log}")
    original = next(cell for cell in result.cells if cell.variant == ORIGINAL)
    before = next(iter(original.scores[on].values())).value
    tickets = {
        float(cell.axes["draw.speedup"]): next(iter(cell.scores[on].values())).value
        for cell in result.cells
        if cell.variant == TICKET
    }
    metric = result.headline(on)
    losses = {speedup: _lost(before, after, metric) for speedup, after in tickets.items()}
    fitting = [speedup for speedup, lost in losses.items() if at_least(within, lost)]
    if not fitting:
        listed = ", ".join(
            f"{speedup:g} x: {_above(lost, within)}" for speedup, lost in sorted(losses.items())
        )
        raise TombolaError(
            f"every ticket loses more than {_amount(f'{within:g}', metric)} on {on} (lost at {listed}): allow more "
            "with --within, train longer with --time, or choose a --speedup"
        )
    return max(fitting)


def _cell(result: Result, variant: str, runtime: str) -> CellResult:
    for cell in result.cells:
        if cell.variant == variant and cell.recipe.get("runtime", "transformers") == runtime:
            return cell
    raise TombolaError(f"this result has no {variant} in {runtime}")


def _change(result: Result, store: Store, on: str) -> Change | None:
    """Return the paired difference on a data set, from the examples that each model got right."""
    from tombola.pipeline.stages.evaluate import read_correct

    pair = [_cell(result, variant, "transformers") for variant in (ORIGINAL, TICKET)]
    right = [read_correct(store.open(cell.stages.evaluations[on])) for cell in pair]
    if any(part is None for part in right):
        return None
    before, after = (np.asarray(part, dtype=bool) for part in right)
    lost, gained, n = int((before & ~after).sum()), int((after & ~before).sum()), len(before)
    return Change((gained - lost) / n, *paired_interval(lost, gained, n))


def _verdict(result: Result, on: str, clean: Change | None, within: float) -> str:
    original, ticket = (_cell(result, variant, "transformers") for variant in (ORIGINAL, TICKET))
    metric = result.headline(on)
    before, after = (next(iter(cell.scores[on].values())).value for cell in (original, ticket))
    begin = "The ticket has"
    if ticket.measured and ticket.measured.speedup:
        begin = f"The ticket is {_speed(ticket)} as fast as the original{_missed(ticket)}, with"
    interval = (
        f" (difference {_points(clean.mean)}, 95 %: {_points(clean.low)} to {_points(clean.high)})"
        if clean
        else ""
    )
    scores = [f"{metric} {write_value(after, metric)} against {write_value(before, metric)}{interval}"]
    for name in (name for name in result.targets if name != on):
        pair = [
            next(iter(cell.scores[name].values())).value for cell in (ticket, original) if name in cell.scores
        ]
        if len(pair) == 2:
            ticket_score, original_score = (write_value(value, result.headline(name)) for value in pair)
            scores.append(f"{ticket_score} against {original_score} {_named(name, result)}")
    lost = _lost(before, after, metric)
    doubt = nothing_to_match(next(row for row in result.summaries() if row.dense), on, result)
    if at_least(within, lost):
        kept = f"it loses at most {_amount(f'{within:g}', metric)}, as requested"
        if clean is not None and -clean.low * 100 > within:
            kept += f" (with 95 % confidence, at most {-clean.low * 100:.1f})"
    else:
        kept = f"it loses {_amount(_above(lost, within), metric)}, more than the {within:g} allowed"
    return f"{begin} {listed(scores)}; {doubt or kept}."


def _lost(before: float, after: float, metric: str) -> float:
    """Return the loss of a ticket in points; for a perplexity, its rise in percent."""
    return 100 * (after / before - 1) if lower_is_better(metric) else 100 * (before - after)


def _amount(number: str, metric: str) -> str:
    """Return a loss with its unit: `1 point`, `2.5 points`, `3 percent of perplexity`."""
    if lower_is_better(metric):
        return f"{number} percent of {metric}"
    unit = "point" if is_share(metric) else "hundredth"
    return f"{number} {unit}{'' if number == '1' else 's'}{'' if is_share(metric) else f' of {metric}'}"


def _above(lost: float, within: float) -> str:
    """Format a loss with as many digits as show that it is above the accepted one."""
    return next((f"{lost:.{digits}f}" for digits in (1, 2, 3) if round(lost, digits) > within), f"{lost:g}")


def _points(share: float) -> str:
    return f"{100 * share:+z.1f}".replace("-", "−")


def _named(name: str, result: Result) -> str:
    if result.condition(name) == "under attack":
        return f"under {name}"
    return f"on {name.replace('+', ' with ')}"


def _speed(cell: CellResult) -> str:
    assert cell.measured is not None
    speedups = cell.measured.speedup.items()
    return listed([f"{speedup.ratio:.2f} times (batch {size})" for size, speedup in speedups])


def _missed(cell: CellResult) -> str:
    """Return the requested speed-up if the measured one is clearly below it at a batch size that counts."""
    assert cell.measured is not None
    draw = cell.recipe.get("draw") or {}
    wanted, sizes = (
        draw.get(name, DrawSettings.model_fields[name].default) for name in ("speedup", "batch_size")
    )
    if wanted is None:
        return ""
    counting = [speedup for size, speedup in cell.measured.speedup.items() if size in sizes]
    missed = any(speedup.high < wanted and speedup.ratio < CLEARLY_BELOW * wanted for speedup in counting)
    return f", short of the {wanted:g} requested" if missed else ""
