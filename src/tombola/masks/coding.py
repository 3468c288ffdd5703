"""Bits on disk in little more than their entropy: Huffman codes, of the bytes or of the gaps between the rarer bits.

A byte of eight independent bits has 256 values, enough for whole-bit codes to come within 2 % of the entropy, unless
nearly all bytes are equal. Where one of the two bits is that rare, the distance from each of its places to the next is
coded instead. The codes are deflate's, without its search for repetitions, which random bits do not have.
"""

import zlib
from typing import Literal

import numpy as np

from tombola.masks.bits import Bits, clear_padding

Coding = Literal["bytes", "gaps of ones", "gaps of zeros"]

RARE = 0.08
"""Share of the rarer bit below which gaps are tried."""
FAR = 255
"""The byte of a gap that goes on: so many places, and then the next byte's."""


def encode(bits: Bits, count: int) -> tuple[Coding, Bits]:
    """The shortest code of `count` packed bits, and how it is read.

    Args:
        bits: Packed bits, with zeros after the last one.
        count: How many there are.
    """
    codes: dict[Coding, Bits] = {"bytes": _deflate(bits)}
    ones = np.bitwise_count(bits).sum(dtype=np.int64) / max(1, count)
    if ones < RARE:
        codes["gaps of ones"] = _deflate(_gaps(bits, count))
    elif ones > 1 - RARE:
        codes["gaps of zeros"] = _deflate(_gaps(clear_padding(~bits, count), count))
    return min(codes.items(), key=lambda item: len(item[1]))


def decode(coding: Coding, code: Bits, count: int) -> Bits:
    """The packed bits that were encoded.

    Args:
        coding: How the code is read.
        code: The code.
        count: How many bits there are.

    Raises:
        ValueError: If this is no code of so many bits.
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
    """The zeros before each one, from 0 to 254 in a byte, after a byte of 255 for every 255 more."""
    places = np.flatnonzero(np.unpackbits(bits, count=count))
    far, near = np.divmod(np.diff(places, prepend=-1) - 1, FAR)
    steps = np.full(len(places) + int(far.sum()), FAR, np.uint8)
    steps[np.cumsum(far + 1) - 1] = near
    return steps


def _deflate(data: Bits) -> Bits:
    coder = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zlib.Z_HUFFMAN_ONLY)
    return np.frombuffer(coder.compress(np.ascontiguousarray(data).data) + coder.flush(), np.uint8)


def _inflate(code: Bits, longest: int) -> Bits:
    """The bytes of a code, of which no more than `longest` are ever held."""
    decoder = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = decoder.decompress(np.ascontiguousarray(code).data, longest + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(data) > longest or not decoder.eof or decoder.unused_data:
        raise ValueError("the code does not end where it should")
    return np.frombuffer(data, np.uint8).copy()
