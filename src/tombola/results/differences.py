"""Paired tests between the variants of a result, seed by seed and example by example."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.errors import TombolaError, UnknownName
from tombola.evaluation.intervals import normal_quantile
from tombola.evaluation.scores import Score
from tombola.results.decisions import Estimate
from tombola.results.record import CellResult
from tombola.results.statistics import holm, mcnemar, paired_t, sign_flips
from tombola.results.summary import Summary, by_baseline, combined_error, estimate_values

if TYPE_CHECKING:
    from tombola.results.result import Result
    from tombola.store.store import Store

Pairs = Sequence[tuple[CellResult, CellResult]]
ReadCorrect = Callable[[str], "np.ndarray | None"]


@dataclass(frozen=True)
class Difference:
    """Two variants at one point of the grid, seed by seed: `first` − `second` in the headline metric.

    Attributes:
        first: Variant and axes of the first.
        second: Variant and axes of the second.
        on: The data set.
        seeds: Number of common seeds.
        mean: Mean difference.
        t: Two-sided p value of the paired t test; needs two seeds, and differences that are not all equal.
        flips: Two-sided p value of the sign-flip permutation test, which assumes no distribution.
        mcnemar: Two-sided exact p value of McNemar's test on the examples, if predictions are classes. An example
            counts for the variant that got it right with more seeds.
        holm: The p value of the t test (of McNemar's with one seed), corrected for the number of pairs.
        note: Why McNemar's test is missing, e.g. if predictions are no longer in the store.
    """

    first: dict[str, Any]
    second: dict[str, Any]
    on: str
    seeds: int
    mean: float
    t: float | None
    flips: float | None
    mcnemar: float | None = None
    holm: float | None = None
    note: str | None = None


@dataclass(frozen=True)
class Change:
    """The difference between the scores of two rows.

    Attributes:
        estimate: The difference, with its 95 % interval.
        paired: Whether runs with the same seeds were compared one by one.
    """

    estimate: Estimate
    paired: bool

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.estimate.low > 0 or self.estimate.high < 0


def differences(result: Result, on: str, store: Store | None = None) -> list[Difference]:
    """Compare all pairs of variants that can be compared fairly and have seeds in common.

    Args:
        result: The result.
        on: The data set.
        store: The store with the predictions, for McNemar's test; without it, the test is left out.
    """
    if on not in result.targets:
        raise UnknownName("data set of this result", on, result.targets)
    read = _reader(store) if store is not None and on in result.datasets else None
    tests = [
        _compare(first, second, pairs, on, read)
        for rows in by_baseline(result.summaries())
        for first, second in itertools.combinations(rows, 2)
        if first.meets(second) and (pairs := list(_by_seed(first, second, on)))
    ]
    values = [test.t if test.seeds > 1 else test.mcnemar for test in tests]
    tested = [(index, value) for index, value in enumerate(values) if value is not None]
    corrected = holm([value for _, value in tested])
    for (index, _), value in zip(tested, corrected, strict=True):
        tests[index] = replace(tests[index], holm=value)
    return tests


def estimate_difference(first: Summary, second: Summary, on: str) -> Change | None:
    """Estimate `second` − `first` in the headline metric, with a 95 % interval.

    Rows with the same seeds, or with several in common, are compared seed by seed; other rows by their means, with
    Welch's interval. Between single runs, the interval is normal, from the standard errors of both.

    Args:
        first: The row to compare with.
        second: The row to compare.
        on: The data set or attack; if either row has no score on it, the result is None.
    """
    if on not in first.scores or on not in second.scores or first.metrics[on] != second.metrics[on]:
        return None
    pairs = list(_by_seed(first, second, on))
    if len(pairs) > 1 or len(pairs) == first.seeds == second.seeds:
        values = [_headline(b, on) - _headline(a, on) for a, b in pairs]
        errors = [combined_error((_score(a, on).stderr, _score(b, on).stderr)) for a, b in pairs]
        return Change(estimate_values(values, errors), paired=True)
    return Change(_welch(first.scores[on], second.scores[on]), paired=False)


def _welch(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two means over different seeds, with Welch's interval; normal if one is a single run."""
    mean, errors = second.mean - first.mean, (first.stderr_of_mean, second.stderr_of_mean)
    error = combined_error(errors)
    quantile = normal_quantile(0.975)
    if first.std and second.std:
        from scipy import stats

        seeds = (first.seeds, second.seeds)
        degrees = 1 / sum((part / error) ** 4 / (n - 1) for part, n in zip(errors, seeds, strict=True))
        quantile = float(stats.t.ppf(0.975, degrees))
    half = quantile * error
    return Estimate(
        mean=mean,
        std=None,
        stderr=error,
        low=mean - half,
        high=mean + half,
        seeds=min(first.seeds, second.seeds),
    )


def _score(cell: CellResult, on: str) -> Score:
    return next(iter(cell.scores[on].values()))


def _compare(first: Summary, second: Summary, pairs: Pairs, on: str, read: ReadCorrect | None) -> Difference:
    change = np.array([_headline(a, on) - _headline(b, on) for a, b in pairs])
    p, note = _mcnemar_over_examples(pairs, on, read) if read else (None, None)
    return Difference(
        first=first.point,
        second=second.point,
        on=on,
        seeds=len(pairs),
        mean=float(change.mean()),
        t=paired_t(change),
        flips=sign_flips(change),
        mcnemar=p,
        note=note,
    )


def _headline(cell: CellResult, on: str) -> float:
    return _score(cell, on).value


def _by_seed(first: Summary, second: Summary, on: str) -> Iterator[tuple[CellResult, CellResult]]:
    others = {cell.seed: cell for cell in second.cells if on in cell.scores}
    for cell in first.cells:
        if on in cell.scores and cell.seed in others:
            yield cell, others[cell.seed]


def _reader(store: Store) -> ReadCorrect:
    """Return a function that reads which examples an evaluation got right, each stage once."""
    from tombola.pipeline.stages.evaluate import read_correct

    @cache
    def read(stage: str) -> np.ndarray | None:
        return read_correct(store.open(stage))

    return read


def _mcnemar_over_examples(pairs: Pairs, on: str, read: ReadCorrect) -> tuple[float | None, str | None]:
    """Return the p value of McNemar's test over the examples, or why it is missing; neither without classes."""
    try:
        right = [(read(a.stages.evaluations[on]), read(b.stages.evaluations[on])) for a, b in pairs]
    except TombolaError as error:
        return None, f"no McNemar test: {error}"
    vectors = [vector for pair in right for vector in pair if vector is not None]
    if len(vectors) < 2 * len(pairs):
        return None, None
    if len({len(vector) for vector in vectors}) > 1:
        return None, "no McNemar test: the models were evaluated on different examples"
    return mcnemar(np.stack(vectors[::2]), np.stack(vectors[1::2])), None
