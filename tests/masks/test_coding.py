"""Codes of bits: lossless, close to the entropy, and refused when they are not what they should be."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tombola.masks.bits import fits
from tombola.masks.coding import decode, encode

SHARES = [0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.9, 0.95, 0.99, 1.0]


def bits_of(count, share, seed=0):
    return np.packbits(np.random.default_rng(seed).random(count) < share)


@given(st.integers(0, 5000), st.sampled_from(SHARES), st.integers(0, 10))
def test_every_bit_comes_back(count, share, seed):
    bits = bits_of(count, share, seed)
    coding, code = encode(bits, count)
    again = decode(coding, code, count)
    assert np.array_equal(again, bits)
    assert fits(again, count)


@pytest.mark.parametrize("places", [[], [0], [254], [255], [256], [510], [511], [0, 256, 1020, 1999]])
@pytest.mark.parametrize("flipped", [False, True])
def test_gaps_of_any_length_come_back(places, flipped):
    kept = np.full(2000, flipped)
    kept[places] = not flipped
    bits = np.packbits(kept)
    coding, code = encode(bits, 2000)
    assert coding == ("gaps of zeros" if flipped else "gaps of ones")
    assert np.array_equal(decode(coding, code, 2000), bits)


@pytest.mark.parametrize("share", [0.01, 0.02, 0.05, 0.07, 0.1, 0.3, 0.5, 0.7, 0.9, 0.93, 0.99])
def test_a_code_takes_at_most_2_percent_more_than_the_entropy(share):
    count = 4_000_000
    _, code = encode(bits_of(count, share), count)
    entropy = -share * log2(share) - (1 - share) * log2(1 - share)
    assert len(code) <= 1.02 * entropy * count / 8


def test_two_of_four_take_their_entropy_too():
    patterns = np.array([0b0011, 0b0101, 0b0110, 0b1001, 0b1010, 0b1100], np.uint8)
    drawn = np.random.default_rng(0).choice(patterns, (500_000, 2))
    bits = drawn[:, 0] << 4 | drawn[:, 1]
    _, code = encode(bits, 4_000_000)
    assert len(code) <= 1.02 * log2(6) / 4 * 4_000_000 / 8


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_what_is_no_code_of_so_many_bits_is_refused(share):
    coding, code = encode(bits_of(4000, share), 4000)
    for wrong, count in [
        (code[:-1], 4000),
        (np.append(code, code[:4]), 4000),
        (code[::-1], 4000),
        (code, 800),
    ]:
        with pytest.raises(ValueError, match=r"\w"):
            decode(coding, wrong, count)


def test_a_code_never_takes_more_memory_than_its_bits():
    _, bomb = encode(np.zeros(10_000_000, np.uint8), 80_000_000)
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match="does not end"):
        decode("bytes", encode(np.tile(np.uint8(170), 10_000_000), 80_000_000)[1], 80)
