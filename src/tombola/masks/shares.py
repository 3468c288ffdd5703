"""How many units a share is: exactly, for the fraction that a float stands for. 0.35 of 90 is 31.5, not 31.499999."""

from fractions import Fraction
from functools import lru_cache
from math import floor

DENOMINATOR, ROUNDING = 10**6, Fraction(1, 10**15)
"""The largest denominator of a fraction that a float may stand for, and how far apart the two may be."""


def removals(sparsity: float, count: int) -> int:
    """Return how many of `count` units a sparsity removes: the nearest integer, halves rounded up.

    Args:
        sparsity: The fraction to remove.
        count: The number of units.
    """
    return floor(_meant(sparsity) * count + Fraction(1, 2))


def whole_units(share: float, count: int) -> int:
    """Return ⌊share · count⌋: 0.29 of 100 is 29.

    Args:
        share: The fraction.
        count: The number of units.
    """
    return floor(_meant(share) * count)


@lru_cache
def _meant(share: float) -> Fraction:
    """Return the simple fraction next to a float, such as 3/10 for 0.1 + 0.2; if there is none, the float itself."""
    exact = Fraction(share)
    simple = exact.limit_denominator(DENOMINATOR)
    return simple if abs(simple - exact) <= ROUNDING else exact
