"""The number of units a sparsity removes."""

from math import floor


def removals(sparsity: float, count: int) -> int:
    """Return how many of `count` units a sparsity removes: the nearest integer, halves rounded up.

    Args:
        sparsity: The fraction to remove.
        count: The number of units.
    """
    return floor(sparsity * count + 0.5)
