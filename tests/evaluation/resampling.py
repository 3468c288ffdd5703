"""The bootstrap by brute force, over examples, which faster ones are compared with."""

from collections.abc import Callable

import numpy as np


def standard_error(
    statistic: Callable[..., float], *columns: np.ndarray, resamples: int = 500, seed: int = 0
) -> float:
    """The standard deviation of a statistic over examples drawn with replacement, rows kept together."""
    n = len(columns[0])
    draws = np.random.default_rng(seed).integers(n, size=(resamples, n))
    return float(np.std([statistic(*(column[draw] for column in columns)) for draw in draws], ddof=1))
