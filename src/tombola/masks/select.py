"""Exact selection of the lowest float32 scores by two 16-bit histograms, in cache-sized chunks."""

from collections.abc import Iterator
from dataclasses import dataclass
from sys import byteorder

import numpy as np
import torch
from numpy.typing import NDArray

from tombola.errors import TombolaError
from tombola.masks.bits import Bits, ones, population

CHUNK = 1 << 17  # 512 kB of scores; smaller ones pay more for each histogram, larger ones leave the cache
BINS = 1 << 16
UPPER = 1 if byteorder == "little" else 0  # which half of a float holds sign, exponent and upper mantissa

Floats = NDArray[np.float32]
Keys = NDArray[np.uint32]


@dataclass(frozen=True)
class RankedGroup:
    """A group's scores; `within` holds the bits of the units left so far, `protected` of those that must stay."""

    name: str
    scores: torch.Tensor
    within: Bits | None = None
    protected: Bits | None = None
    absolute: bool = False

    @property
    def gone(self) -> int:
        """The number of units already removed."""
        return 0 if self.within is None else self.scores.numel() - population(self.within)

    @property
    def clash(self) -> bool:
        """Whether a removed unit is protected."""
        return (
            self.within is not None
            and self.protected is not None
            and bool((self.protected & ~self.within).any())
        )

    @property
    def free(self) -> Bits | None:
        """The bits of the units that may still be removed; None if all may."""
        if self.protected is None:
            return self.within
        within = ones(self.scores.numel()) if self.within is None else self.within
        return within & ~self.protected

    @property
    def free_count(self) -> int:
        """The number of units that may still be removed."""
        free = self.free
        return self.scores.numel() if free is None else population(free)

    def chunks(self) -> Iterator[tuple[Floats, NDArray[np.bool_] | None]]:
        """Yield the scores in chunks, each with a mask of those that may be removed, or None if all may."""
        scores = self.scores.cpu().contiguous().numpy().reshape(-1)
        free = self.free
        for start in range(0, scores.size, CHUNK):
            chunk = scores[start : start + CHUNK]
            if self.absolute:
                chunk = np.abs(chunk)
            if free is None:
                yield chunk, None
            else:
                bits = free[start // 8 : (start + CHUNK) // 8]
                yield chunk, np.unpackbits(bits, count=chunk.size).view(np.bool_)


def keep_highest(groups: list[RankedGroup], remove: int) -> dict[str, Bits]:
    """Remove the `remove` lowest of the removable units, and return the bits of what is left of each group.

    Among equal scores, later units (by group, then row-major) are removed first.
    """
    high = _histogram_high(groups)
    if remove == 0:
        return {group.name: _left(group, ones(group.scores.numel())) for group in groups}
    top, below = _bin_of(high, remove)
    low = _histogram_low(groups, top)
    bottom, below_low = _bin_of(low, remove - below)
    ties_to_keep = int(low[bottom]) - (remove - below - below_low)
    threshold = _score(top << 16 | bottom)
    kept = {}
    for group in groups:
        above, ties_to_keep = _above(group, threshold, ties_to_keep)
        kept[group.name] = _left(group, above)
    return kept


def highest(scores: torch.Tensor, count: int) -> torch.Tensor:
    """Return which of one group's scores are the `count` highest; among equal scores the earlier are.

    Args:
        scores: A score for each unit, in one dimension.
        count: The number of units to keep.
    """
    kept = torch.zeros(scores.shape, dtype=torch.bool)
    kept[scores.sort(descending=True, stable=True).indices[:count]] = True
    return kept


def keep_highest_checked(groups: list[RankedGroup], remove: int, what: str) -> dict[str, Bits]:
    """Call `keep_highest` on groups that may have lost units already, or raise an error if the count is impossible.

    Args:
        groups: The groups to rank together.
        remove: The total number of removed units in the end.
        what: What the units are, for the error message: "units of the model".
    """
    gone = sum(group.gone for group in groups)
    free = sum(group.free_count for group in groups)
    if any(group.clash for group in groups):
        raise TombolaError(f"the mask `within` has already removed protected {what}.")
    if not gone <= remove <= gone + free:
        raise TombolaError(
            f"{remove} {what} cannot be removed: {gone} are already removed, and only {free} more may be."
        )
    return keep_highest(groups, remove - gone)


def _left(group: RankedGroup, chosen: Bits) -> Bits:
    """Return what is left of a group when only the chosen of the removable units stay."""
    if group.protected is not None:
        chosen |= group.protected
    if group.within is not None:
        chosen &= group.within
    return chosen


def _histogram_high(groups: list[RankedGroup]) -> NDArray[np.int64]:
    """Return the histogram of the keys' upper 16 bits.

    Counts the upper half of each float as stored, without computing keys, and then reorders the bins.
    """
    stored = np.zeros(BINS, np.int64)
    minus_zeros = 0
    for group in groups:
        for chunk, free in group.chunks():
            if np.isnan(chunk.max()):
                raise TombolaError(f"some scores of {group.name} are NaN, so no mask can be drawn.")
            chunk = chunk if free is None else chunk[free]
            counts = np.bincount(chunk.view(np.uint16)[UPPER::2], minlength=BINS)
            if counts[0x8000]:
                minus_zeros += int(np.count_nonzero(chunk.view(np.uint32) == 0x80000000))
            stored += counts
    ordered = np.concatenate([stored[:0x7FFF:-1], stored[:0x8000]])
    ordered[0x7FFF] -= minus_zeros
    ordered[0x8000] += minus_zeros
    return ordered


def _histogram_low(groups: list[RankedGroup], top: int) -> NDArray[np.int64]:
    """Return the histogram of the lower 16 bits of the keys whose upper 16 bits are `top`."""
    histogram = np.zeros(BINS, np.int64)
    least, most = _score(top << 16), _score(top << 16 | 0xFFFF)
    for group in groups:
        for chunk, free in group.chunks():
            inside = chunk >= least
            inside &= chunk <= most
            if free is not None:
                inside &= free
            keys = ordered_keys(chunk[inside])
            histogram += np.bincount(keys[keys >> 16 == top] & 0xFFFF, minlength=BINS)
    return histogram


def _bin_of(histogram: NDArray[np.int64], rank: int) -> tuple[int, int]:
    """Return the bin that holds the rank-th lowest key (from 1), and the number of keys in the bins below it."""
    cumulative = np.cumsum(histogram)
    place = int(np.searchsorted(cumulative, rank))
    return place, int(cumulative[place] - histogram[place])


def _above(group: RankedGroup, threshold: np.float32, ties_to_keep: int) -> tuple[Bits, int]:
    """Return the bits of the scores above the threshold and of the first ties, and how many ties remain to keep."""
    kept = np.empty(-(-group.scores.numel() // 8), np.uint8)
    for index, (chunk, free) in enumerate(group.chunks()):
        keep = chunk > threshold
        if ties_to_keep:
            tied = chunk == threshold
            if free is not None:
                tied &= free
            first = np.flatnonzero(tied)[:ties_to_keep]
            keep[first] = True
            ties_to_keep -= first.size
        start = index * CHUNK // 8
        kept[start : start + CHUNK // 8] = np.packbits(keep)
    return kept, ties_to_keep


def ordered_keys(scores: Floats) -> Keys:
    """Map scores to unsigned integers in the same order: −0.0 as 0.0, negative numbers with all bits flipped."""
    raw = (scores + np.float32(0.0)).view(np.int32)
    return (raw ^ (raw >> 31 | np.int32(-(1 << 31)))).view(np.uint32)


def _score(key: int) -> np.float32:
    """Return the score of a key, clamped to ±infinity."""
    key = min(max(key, 0x007FFFFF), 0xFF800000)
    raw = key ^ 0x80000000 if key & 0x80000000 else key ^ 0xFFFFFFFF
    return np.uint32(raw).view(np.float32)
