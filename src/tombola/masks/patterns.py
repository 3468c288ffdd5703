"""Apply sparsity patterns to matrices: N of every M weights, or whole blocks."""

import numpy as np
from numpy.typing import NDArray

from tombola.masks.pattern_names import Blocks, NofM, Pattern, parse_pattern

GROUPS = 1 << 18
"""Groups to compare at once: temporary arrays stay small beside a large matrix."""

__all__ = ["Blocks", "NofM", "Pattern", "keep_in_groups", "keep_in_rows", "parse_pattern"]


def keep_in_rows(values: NDArray[np.generic], remove: int) -> NDArray[np.bool_]:
    """Return which entries stay when each row loses its `remove` lowest; among equal entries the later go first.

    Args:
        values: Numbers, none of them NaN.
        remove: How many entries of each row to remove.
    """
    rows, columns = values.shape
    if remove == 0 or remove == columns:
        return np.full((rows, columns), remove == 0)
    threshold = np.partition(values, remove - 1, axis=1)[:, remove - 1 : remove]
    kept: NDArray[np.bool_] = values > threshold
    lacking = columns - remove - kept.sum(axis=1)
    short = np.flatnonzero(lacking)
    if short.size:
        tied = values[short] == threshold[short]
        kept[short] |= tied & (np.cumsum(tied, axis=1) <= lacking[short, None])
    return kept


def keep_in_groups(values: NDArray[np.generic], pattern: NofM) -> NDArray[np.bool_]:
    """Return which entries of an outputs × inputs matrix an N:M pattern keeps; among equal values the later go first.

    Args:
        values: Numbers, none of them NaN.
        pattern: The N:M pattern.
    """
    groups = values.reshape(-1, pattern.of)
    if pattern.of > 16:
        return keep_in_rows(groups, pattern.of - pattern.keep).reshape(values.shape)
    kept = np.empty(groups.shape, np.bool_)
    for start in range(0, len(groups), GROUPS):
        kept[start : start + GROUPS] = _keep_in_small_groups(groups[start : start + GROUPS], pattern)
    return kept.reshape(values.shape)


def _keep_in_small_groups(groups: NDArray[np.generic], pattern: NofM) -> NDArray[np.bool_]:
    """Return which entries stay, one group a row, by comparing each pair of columns."""
    columns = [np.ascontiguousarray(groups[:, place]) for place in range(pattern.of)]
    below = np.zeros((pattern.of, len(groups)), np.uint8)  # how many entries of its group each entry outlasts
    for later in range(pattern.of):
        for earlier in range(later):
            later_goes_first = columns[later] <= columns[earlier]
            below[earlier] += later_goes_first
            below[later] += ~later_goes_first
    kept: NDArray[np.bool_] = (below >= pattern.of - pattern.keep).T
    return kept
