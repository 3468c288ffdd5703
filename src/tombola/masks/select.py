"""Exact selection of the lowest of many float32 scores by two 16-bit histograms, in cache-sized chunks."""

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
class Candidates:
    """A group's scores; `within` has the bits of what is left so far, `protected` of what may not go."""

    name: str
    scores: torch.Tensor
    within: Bits | None = None
    protected: Bits | None = None
    absolute: bool = False

    @property
    def gone(self) -> int:
        """How many units are gone already."""
        return 0 if self.within is None else self.scores.numel() - population(self.within)

    @property
    def clash(self) -> bool:
        """Whether something that is gone is protected."""
        return (
            self.within is not None
            and self.protected is not None
            and bool((self.protected & ~self.within).any())
        )

    @property
    def free(self) -> Bits | None:
        """The bits of what may still go; None where all may."""
        if self.protected is None:
            return self.within
        within = ones(self.scores.numel()) if self.within is None else self.within
        return within & ~self.protected

    @property
    def free_count(self) -> int:
        """How many units may still go."""
        free = self.free
        return self.scores.numel() if free is None else population(free)

    def chunks(self) -> Iterator[tuple[Floats, NDArray[np.bool_] | None]]:
        """The scores chunk by chunk, each with which of them may go; None where all may."""
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


def keep_highest(groups: list[Candidates], remove: int) -> dict[str, Bits]:
    """The bits of what is left of every group when the `remove` lowest of the units that may go are gone.

    Of equal scores the later, in the order of groups and then row-major, goes first.
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


def keep_highest_checked(groups: list[Candidates], remove: int, what: str) -> dict[str, Bits]:
    """`keep_highest` of groups of which some units may be gone already; refused where that is impossible.

    Args:
        groups: What is ranked together.
        remove: How many are gone in the end.
        what: What they are, for the message: "units of the model".
    """
    gone = sum(group.gone for group in groups)
    free = sum(group.free_count for group in groups)
    if any(group.clash for group in groups):
        raise TombolaError(f"{what} are to be protected that the mask drawn within has removed.")
    if not gone <= remove <= gone + free:
        raise TombolaError(
            f"{remove} {what} are to go, but {gone} are already gone and only {free} more may go."
        )
    return keep_highest(groups, remove - gone)


def _left(group: Candidates, chosen: Bits) -> Bits:
    """What is left of a group when of the units that may go only the chosen stay."""
    if group.protected is not None:
        chosen |= group.protected
    if group.within is not None:
        chosen &= group.within
    return chosen


def _histogram_high(groups: list[Candidates]) -> NDArray[np.int64]:
    """The histogram of the upper 16 bits of the keys.

    Counted by the upper half of each float as it is stored, which needs no keys, and then put in order.
    """
    stored = np.zeros(BINS, np.int64)
    minus_zeros = 0
    for group in groups:
        for chunk, free in group.chunks():
            if np.isnan(chunk.max()):
                raise TombolaError(f"some scores of {group.name} are NaN: nothing can be drawn from them.")
            chunk = chunk if free is None else chunk[free]
            counts = np.bincount(chunk.view(np.uint16)[UPPER::2], minlength=BINS)
            if counts[0x8000]:
                minus_zeros += int(np.count_nonzero(chunk.view(np.uint32) == 0x80000000))
            stored += counts
    ordered = np.concatenate([stored[:0x7FFF:-1], stored[:0x8000]])
    ordered[0x7FFF] -= minus_zeros
    ordered[0x8000] += minus_zeros
    return ordered


def _histogram_low(groups: list[Candidates], top: int) -> NDArray[np.int64]:
    """The histogram of the lower 16 bits of those keys whose upper 16 are `top`."""
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
    """The bin that holds the rank-th lowest (from 1), and how many lie in the bins below it."""
    cumulative = np.cumsum(histogram)
    place = int(np.searchsorted(cumulative, rank))
    return place, int(cumulative[place] - histogram[place])


def _above(group: Candidates, threshold: np.float32, ties_to_keep: int) -> tuple[Bits, int]:
    """The bits of scores above the threshold and of the first ties; how many ties are still to be kept."""
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
    """Unsigned integers in the order of the scores: −0.0 as 0.0, negative numbers with all bits flipped."""
    raw = (scores + np.float32(0.0)).view(np.int32)
    return (raw ^ (raw >> 31 | np.int32(-(1 << 31)))).view(np.uint32)


def _score(key: int) -> np.float32:
    """The score of a key, within the infinities."""
    key = min(max(key, 0x007FFFFF), 0xFF800000)
    raw = key ^ 0x80000000 if key & 0x80000000 else key ^ 0xFFFFFFFF
    return np.uint32(raw).view(np.float32)
