"""Candidate corrections from an index of words with letters deleted. (Garbe 2012, SymSpell)

Two strings within a few edits of each other become equal when letters are deleted from both, so there is no need to
search an alphabet. The index stores sorted hashes instead of strings, 12 bytes per deletion, and computes those of
all words of one length at once. The scoring of candidates weeds out the few words that share a hash by accident.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

LONGEST = 24
"""The most letters of an indexed word: longer ones are rarely words, and have hundreds of deletions."""

Codes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2 ** 64
_INVERSE = np.uint64(pow(_BASE, -1, 2**64))
_WEIGHTS = [pow(_BASE, i + 1, 2**64) for i in range(LONGEST + 3)]
_POWERS: Codes = np.array(_WEIGHTS, np.uint64)
_MODULO = 2**64 - 1


class DeletionIndex:
    """Finds the words within one or two edits of a string.

    Args:
        words: The words, each once.
        edits: 1 or 2.
    """

    def __init__(self, words: Sequence[str], edits: int) -> None:
        self.words = words
        self.edits = edits
        by_length: dict[int, list[int]] = {}
        for number, word in enumerate(words):
            if 0 < len(word) <= LONGEST:
                by_length.setdefault(len(word), []).append(number)
        keys, owners = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
        for size, numbers in by_length.items():
            hashes = deletion_hashes([words[number] for number in numbers], size, edits)
            keys.append(hashes.ravel())
            owners.append(np.repeat(np.array(numbers, np.int32), hashes.shape[1]))
        joined = np.concatenate(keys)
        order = np.argsort(joined)
        # For a few hashes, Python's bisect is several times faster than NumPy's.
        self._keys, self._owners = joined[order].data, np.concatenate(owners)[order].data

    def near(self, typed: str) -> set[str]:
        """Return the words within the number of edits of `typed`, occasionally with some that are further away."""
        if not 0 < len(typed) <= LONGEST + 1:
            return set()
        hashes: Iterable[int] = _one_deletion(typed)
        if self.edits == 2:
            hashes = deletion_hashes([typed], len(typed), 2)[0].tolist()
        keys, words = self._keys, set()
        for wanted in hashes:
            at = bisect_left(keys, wanted)
            while at < len(keys) and keys[at] == wanted:
                words.add(self.words[self._owners[at]])
                at += 1
        return words


def deletion_hashes(words: Sequence[str], size: int, edits: int) -> Codes:
    """Return the hashes of words of `size` letters: whole, without each letter and, if `edits` is 2, without each two.

    The hash of a string is the sum of its code points, each times the power of its position; the letters after a
    deleted one move up one position. Prefix and suffix sums give every deletion.
    """
    codes = np.array(words, f"<U{size}").view(np.uint32).reshape(len(words), size).astype(np.uint64)
    stay = _sums(codes * _POWERS[1 : size + 1])
    move = _sums(codes * _POWERS[:size])
    whole, moved = stay[:, -1:], move[:, -1:]
    one = stay[:, :-1] + (moved - move[:, 1:])
    if edits == 1:
        return np.concatenate([whole, one], axis=1)
    far = _sums(codes * (_POWERS[:size] * _INVERSE))
    first, second = np.triu_indices(size, 1)
    two = stay[:, first] + (move[:, second] - move[:, first + 1]) + (far[:, -1:] - far[:, second + 1])
    return np.concatenate([whole, one, two], axis=1)


def _one_deletion(word: str) -> set[int]:
    """Return the hashes of a word, whole and without each letter, computed incrementally."""
    codes = [ord(letter) for letter in word]
    whole = sum(code * weight for code, weight in zip(codes, _WEIGHTS[1:], strict=False))
    without = sum(code * weight for code, weight in zip(codes[1:], _WEIGHTS[1:], strict=False))
    found = {whole & _MODULO, without & _MODULO}
    for before, code, weight in zip(codes, codes[1:], _WEIGHTS[1:], strict=False):
        without += (before - code) * weight
        found.add(without & _MODULO)
    return found


def _sums(values: Codes) -> Codes:
    """Return the sums over the first 0, 1, … all columns."""
    sums = np.zeros((values.shape[0], values.shape[1] + 1), np.uint64)
    np.cumsum(values, axis=1, out=sums[:, 1:])
    return sums
