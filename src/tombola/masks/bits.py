"""One bit per unit, packed eight to a byte, row-major; the padding bits at the end are always 0."""

import numpy as np
import torch
from numpy.typing import NDArray

Bits = NDArray[np.uint8]


def pack(kept: torch.Tensor) -> Bits:
    """Pack a boolean tensor into bits."""
    return np.packbits(kept.detach().cpu().contiguous().numpy().reshape(-1))


def unpack(bits: Bits, shape: tuple[int, ...]) -> torch.Tensor:
    """Unpack bits into a boolean tensor of the given shape."""
    return torch.from_numpy(np.unpackbits(bits, count=int(np.prod(shape))).view(np.bool_)).reshape(shape)


def ones(count: int) -> Bits:
    """Return `count` set bits."""
    return clear_padding(np.full(-(-count // 8), 0xFF, np.uint8), count)


def fits(bits: Bits, count: int) -> bool:
    """Return whether an array is a valid packing of `count` bits."""
    right_size = bits.dtype == np.uint8 and bits.shape == (-(-count // 8),)
    return right_size and not (count % 8 and bits[-1] & 0xFF >> count % 8)


def clear_padding(bits: Bits, count: int) -> Bits:
    """Set everything after the first `count` bits to 0, in place."""
    if count % 8:
        bits[-1] &= 0xFF ^ 0xFF >> count % 8
    return bits


def population(bits: Bits) -> int:
    """Return the number of set bits."""
    return int(np.bitwise_count(bits).sum(dtype=np.int64))
