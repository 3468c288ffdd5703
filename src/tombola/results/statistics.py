"""Paired tests, their correction for many pairs, and the Pareto front."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tombola.foundations.lazy import lazy_module

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazy_module("scipy.stats")  # takes a second to load

ROUNDING = 1e-12
"""The relative difference below which values count as equal: averaging may change the last digit."""
RESAMPLES = 2000
EXACT = 12
"""The most seeds for which all sign flips are tried; with more, `RESAMPLES` random ones."""


def all_equal(values: Sequence[float] | np.ndarray) -> bool:
    """Return whether all values are equal up to rounding: their variance is then unknown rather than zero."""
    return bool(np.ptp(values) < ROUNDING * max(1.0, np.abs(values).max()))


def at_least(value: float, level: float) -> bool:
    """Return whether a value is not below a level, up to rounding."""
    return value >= level - ROUNDING * max(1.0, abs(level))


def paired_t(change: np.ndarray) -> float | None:
    """Return the two-sided p value of the t test that the mean of paired differences is zero.

    It is None where the test is not defined: for a single difference, and for equal ones, which have no variance.
    """
    if all_equal(change):
        return None
    scale = max(1.0, np.abs(change).max())  # squares of huge differences, as between perplexities, overflow
    return float(stats.ttest_1samp(change / scale, 0.0).pvalue)


def sign_flips(change: np.ndarray) -> float | None:
    """Return the two-sided p value of the sign-flip test: how often random signs give a mean as far from zero."""
    n = len(change)
    if n < 2:
        return None
    if n <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=n)))
    else:
        signs = np.random.default_rng(0).choice((1.0, -1.0), size=(RESAMPLES, n))
        signs[0] = 1.0
    means = np.abs(signs @ change) / n
    rounding = ROUNDING * max(1.0, np.abs(change).max())
    return float(np.mean(means >= abs(change.mean()) - rounding))


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """Return the exact two-sided p value of McNemar's test: whether two models make equally many errors.

    Every example counts once, for the model that got it right with more seeds: the seeds of one example are not
    independent.

    Args:
        first: Whether the first model got each example right, (seeds, examples).
        second: The same for the second model.
    """
    gain = first.sum(axis=0) - second.sum(axis=0)
    for_first, for_second = int((gain > 0).sum()), int((gain < 0).sum())
    if for_first + for_second == 0:
        return 1.0
    return float(stats.binomtest(for_first, for_first + for_second).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Return p values with Holm's correction: the smallest times n, the next times n − 1, never decreasing."""
    corrected, highest = [0.0] * len(values), 0.0
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        highest = max(highest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = highest
    return corrected


def pareto(points: np.ndarray) -> np.ndarray:
    """Return which rows no other row dominates: at least as high in every column, and higher in one."""
    gain = points[:, None, :] - points[None, :, :]
    equal = ROUNDING * np.maximum(1.0, np.abs(points))
    not_lower, higher = (gain >= -equal).all(axis=2), (gain > equal).any(axis=2)
    beaten: np.ndarray = (not_lower & higher).any(axis=0)
    return ~beaten
