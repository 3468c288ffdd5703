"""Confidence intervals for proportions and their differences, for means over seeds, and for medians."""

from collections.abc import Sequence
from math import comb, nan, sqrt
from statistics import NormalDist, median
from typing import NamedTuple

import numpy as np

from tombola.errors import TombolaError


class MeanInterval(NamedTuple):
    """A mean over seeds, with standard deviation and confidence interval."""

    mean: float
    std: float
    low: float
    high: float


class MedianInterval(NamedTuple):
    """A median and its confidence interval."""

    median: float
    low: float
    high: float


def normal_quantile(share: float) -> float:
    """Return a quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(share)


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a proportion of `n` trials; unlike value ± z·stderr it is valid near 0 and 1."""
    if not 0 <= successes <= n or n == 0:
        raise TombolaError(f"{successes} successes of {n} is not a share.")
    z = normal_quantile((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_interval(lost: int, gained: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of the difference between two proportions of the same `n` trials. (Agresti and Min 2005)

    The normal interval with half a trial added to each cell of the 2 × 2 table. Without that it has no width if the
    trials do not differ, and is too narrow if few do.

    Args:
        lost: Trials that only the first got right.
        gained: Trials that only the second got right.
        n: All trials.
        level: The confidence level.
    """
    size = n + 2
    difference = (gained - lost) / size
    half = normal_quantile((1 + level) / 2) * sqrt(lost + gained + 1 - size * difference**2) / size
    return max(-1.0, difference - half), min(1.0, difference + half)


def mean_interval(values: Sequence[float], level: float = 0.95) -> MeanInterval:
    """Return the mean, sample standard deviation and t interval; for a single value all but the mean are NaN."""
    if len(values) == 0:
        raise TombolaError("A mean needs at least one value.")
    mean = float(np.mean(values))
    if len(values) == 1:
        return MeanInterval(mean, nan, nan, nan)
    scale = max(float(np.abs(values).max()), 1.0)  # the squares of some perplexities overflow
    std = scale * float(np.std(np.asarray(values) / scale, ddof=1))
    from scipy import stats  # slow to import

    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1)) * std / sqrt(len(values))
    return MeanInterval(mean, std, mean - half, mean + half)


def median_interval(values: Sequence[float], level: float = 0.95) -> MedianInterval:
    """Return the median and the interval that inverts the sign test, which is valid for any distribution.

    The interval goes from the k-th smallest to the k-th largest value, for the largest k that keeps the level. Fewer
    than `fewest_for_median(level)` values cannot reach the level; the interval is then their range.
    """
    if len(values) == 0:
        raise TombolaError("A median needs at least one value.")
    ordered, n = sorted(values), len(values)
    k = outside = 0  # the median is below the k-th smallest value in `outside` of 2 ** n equally likely cases
    while 2 * (outside + comb(n, k)) <= (1 - level) * 2**n:
        outside += comb(n, k)
        k += 1
    k = max(k, 1)
    return MedianInterval(median(ordered), ordered[k - 1], ordered[n - k])


def fewest_for_median(level: float = 0.95) -> int:
    """Return the smallest number of values whose range contains the median of their distribution at this level."""
    n = 1
    while (1 - level) * 2**n < 2:
        n += 1
    return n
