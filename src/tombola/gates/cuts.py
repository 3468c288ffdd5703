"""Place a threshold so that it separates a mask's open units from its shut ones exactly."""

import math

import numpy as np
import torch
from torch import Tensor

from tombola.masks.bits import Bits, population, unpack
from tombola.masks.select import CHUNK

FAR = np.float32(3e38)


def highest_shut(scores: Tensor, kept: Bits) -> float | None:
    """Return the highest score among the removed units, or None if none is; works in cache-sized chunks."""
    if population(kept) == scores.numel():
        return None
    flat = scores.detach().cpu().numpy().reshape(-1)
    highest = -FAR
    for start in range(0, flat.size, CHUNK):
        chunk = flat[start : start + CHUNK]
        open_ = np.unpackbits(kept[start // 8 : (start + CHUNK) // 8], count=chunk.size)
        highest = max(highest, (chunk - open_ * FAR).max())
    return float(highest)


def below_all(scores: Tensor, cut: float) -> float:
    """Return the cut, lowered to the next float below the lowest score if it is not below all of them."""
    lowest = np.float32(scores.detach().min().item())
    return min(cut, float(np.nextafter(lowest, np.float32(-math.inf))))


@torch.no_grad()
def lift_ties(scores: Tensor, kept: Bits, cut: float) -> None:
    """Move kept scores that do not lie above the cut to the next float above it."""
    flat = scores.detach().cpu().numpy()
    if np.count_nonzero(flat > np.float32(cut)) != population(kept):
        tied = unpack(kept, tuple(scores.shape)).to(scores.device) & (scores <= cut)
        scores.masked_fill_(tied, float(np.nextafter(np.float32(cut), np.float32(math.inf))))
