"""Bootstrap of statistics that are functions of sums over examples: only the sums are resampled."""

from collections.abc import Callable

import numpy as np

from tombola.evaluation.scores import BOOTSTRAP, Score

RESAMPLES = 500
_AT_ONCE = 20_000_000  # random numbers held in memory


def score_of_sums(counts: np.ndarray, formula: Callable[[np.ndarray], np.ndarray]) -> Score:
    """Return a score with its standard error over resampled examples.

    Args:
        counts: The contribution of each example, (examples, columns).
        formula: Maps sums over examples, (…, columns), to the value.
    """
    n = len(counts)
    rng = np.random.default_rng(0)
    size = max(1, _AT_ONCE // n)
    sums = [
        rng.multinomial(n, np.full(n, 1 / n), size=min(size, RESAMPLES - done)) @ counts
        for done in range(0, RESAMPLES, size)
    ]
    spread = formula(np.concatenate(sums).astype(float)).std(ddof=1)
    value = float(formula(counts.sum(axis=0).astype(float)))
    return Score(value, float(spread), n, f"{BOOTSTRAP} of {RESAMPLES}")


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the quotient, or 0 where the denominator is 0."""
    quotient: np.ndarray = np.divide(
        numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator > 0
    )
    return quotient
