"""Store bits in little more than their entropy, with Huffman codes of the bytes or of the gaps between rare bits.

A byte of eight independent bits has 256 values, enough for whole-bit codes to come within 2 % of the entropy unless
nearly all bytes are equal. If one of the two bit values is that rare, the distances between its positions are coded
instead. The codes are deflate's, without its search for repetitions, which random bits do not have.
"""

import zlib
from typing import Literal

import numpy as np

from tombola.masks.bits import Bits, clear_padding

Coding = Literal["bytes", "gaps of ones", "gaps of zeros"]

RARE = 0.08
"""If the rarer bit value makes up less than this share, gaps are tried."""
FAR = 255
"""A byte with this value means: 255 positions, continued in the next byte."""


def encode(bits: Bits, count: int) -> tuple[Coding, Bits]:
    """Return the coding with the shortest result for `count` packed bits, and the encoded bytes.

    Args:
        bits: Packed bits, padded with zeros.
        count: The number of bits.
    """
    codes: dict[Coding, Bits] = {"bytes": _deflate(bits)}
    ones = np.bitwise_count(bits).sum(dtype=np.int64) / max(1, count)
    if ones < RARE:
        codes["gaps of ones"] = _deflate(_gaps(bits, count))
    elif ones > 1 - RARE:
        codes["gaps of zeros"] = _deflate(_gaps(clear_padding(~bits, count), count))
    return min(codes.items(), key=lambda item: len(item[1]))


def decode(coding: Coding, code: Bits, count: int) -> Bits:
    """Decode packed bits.

    Args:
        coding: The coding that `encode` chose.
        code: The encoded bytes.
        count: The number of bits.

    Raises:
        ValueError: If `code` does not encode `count` bits.
    """
    size = -(-count // 8)
    if coding == "bytes":
        bits = _inflate(code, size)
        if len(bits) != size:
            raise ValueError(f"{len(bits)} bytes in place of {size}")
        return bits
    steps = _inflate(code, 2 * count + 1)
    near = steps != FAR
    places = np.cumsum(steps.astype(np.int64) + near)[near] - 1
    if len(places) and places[-1] >= count:
        raise ValueError(f"a bit at {places[-1]} of {count}")
    flags = np.zeros(count, np.uint8)
    flags[places] = 1
    bits = np.packbits(flags)
    return bits if coding == "gaps of ones" else clear_padding(~bits, count)


def _gaps(bits: Bits, count: int) -> Bits:
    """Return the number of zeros before each one: a byte of 255 per full 255 zeros, then a byte for the rest."""
    places = np.flatnonzero(np.unpackbits(bits, count=count))
    far, near = np.divmod(np.diff(places, prepend=-1) - 1, FAR)
    steps = np.full(len(places) + int(far.sum()), FAR, np.uint8)
    steps[np.cumsum(far + 1) - 1] = near
    return steps


def _deflate(data: Bits) -> Bits:
    coder = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return np.frombuffer(coder.compress(np.ascontiguousarray(data).data) + coder.flush(), np.uint8)


def _inflate(code: Bits, longest: int) -> Bits:
    """Decompress, refusing more than `longest` bytes."""
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = decoder.decompress(np.ascontiguousarray(code).data, longest + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(data) > longest or not decoder.eof or decoder.unused_data:
        raise ValueError("the code does not end where it should")
    return np.frombuffer(data, np.uint8).copy()
