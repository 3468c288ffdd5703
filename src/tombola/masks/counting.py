"""How many units a sparsity removes."""

from math import floor


def removals(sparsity: float, count: int) -> int:
    """The number of units that a sparsity removes of `count`: the nearest whole number, halves upwards.

    Args:
        sparsity: The share to remove.
        count: The number of units.
    """
    return floor(sparsity * count + 0.5)
