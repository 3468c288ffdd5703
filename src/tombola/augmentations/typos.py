"""Human typing errors: neighbouring keys, letters omitted, doubled or swapped."""

from collections.abc import Callable
from itertools import accumulate
from math import log
from random import Random
from typing import ClassVar, Literal

from pydantic import Field

from tombola.augmentations.base import (
    NOTHING,
    Augmentation,
    Resources,
    augmentations,
    pick,
    replace,
    spans_of,
)
from tombola.words.keyboard import NEIGHBOURS

# The frequency of each kind of slip. These and the numbers below are a choice, not a measurement: wrong keys are the
# most common slip, then missing letters; the rest is rarer.
WEIGHTS = {"substitute": 0.48, "omit": 0.24, "repeat": 0.09, "insert": 0.09, "swap": 0.10}

NEIGHBOUR = 0.9  # fraction of substituted letters that are a neighbouring key; the rest is any letter
FIRST = 0.15  # likelihood of an error in the first letter, relative to each other letter
# Fraction of mistyped words with a second error; Damerau (1964) found a single one in over 80 %.
SECOND_ERROR = 0.1
SHORT = {1: 0.0, 2: 0.15, 3: 0.4}  # likelihood of an error by word length, relative to longer words

_KINDS = tuple(WEIGHTS)
_BOUNDS = tuple(accumulate(WEIGHTS.values()))


@augmentations.register
class Typos(Augmentation):
    """Slips on a QWERTY keyboard, mostly neighbouring keys."""

    by_words: ClassVar[bool] = True
    kind: Literal["typos"] = "typos"
    share: float = Field(0.3, ge=0, le=1, description="share of the words to mistype")
    max_edits: int = Field(2, ge=1, description="maximum errors per word; second ones are rare")

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Mistype some of the words; numbers, addresses and special tokens are not words."""
        spans = spans_of(text)
        chosen = self._choose([end - start for start, end in spans], random)
        words = [self._mistype(text[slice(*spans[i])], random) for i in chosen]
        return replace(text, [spans[i] for i in chosen], words)

    def _choose(self, lengths: list[int], random: Random) -> list[int]:
        """Draw the share of all words by weight, without replacement. (Efraimidis and Spirakis 2006)"""
        draw = random.random
        keys = [
            (log(draw() or 1e-300) / weight, i)
            for i, length in enumerate(lengths)
            if (weight := SHORT.get(length, 1.0))
        ]
        number = int(self.share * len(lengths) + draw())
        if number < len(keys):
            keys = sorted(keys, reverse=True)[:number]
        return sorted(i for _, i in keys) if number else []

    def _mistype(self, word: str, random: Random) -> str:
        mistyped = _slip(word, random)
        for _ in range(1, self.max_edits):
            if random.random() >= SECOND_ERROR:
                break
            mistyped = _slip(mistyped, random)
        return mistyped


def _slip(word: str, random: Random) -> str:
    """Return the word with one error. An error that would change nothing, such as swapping equals, is redrawn."""
    for _ in range(20):
        where = random.random() * (len(word) - 1 + FIRST)
        place = 0 if where < FIRST else min(1 + int(where - FIRST), len(word) - 1)
        kind = random.random() * _BOUNDS[-1]
        edit = _EDITS[next(k for k, bound in zip(_KINDS, _BOUNDS, strict=True) if kind <= bound)]
        edited = edit(word, place, random)
        if edited != word and edited:
            return edited
    return word


def _other_key(letter: str, random: Random) -> str:
    """Return the letter typed instead of `letter`, in its case."""
    near = NEIGHBOURS.get(letter.lower())
    if near is None:
        return letter
    typed = pick(near if random.random() < NEIGHBOUR else tuple(NEIGHBOURS), random)
    return typed.upper() if letter.isupper() else typed


def _substitute(word: str, i: int, random: Random) -> str:
    return word[:i] + _other_key(word[i], random) + word[i + 1 :]


def _omit(word: str, i: int, random: Random) -> str:
    return word[:i] + word[i + 1 :] if len(word) > 2 else word


def _repeat(word: str, i: int, random: Random) -> str:
    return word[:i] + word[i] + word[i:] if word[i].isalpha() else word


def _insert(word: str, i: int, random: Random) -> str:
    """Hit two keys at once: the right one, and a neighbour before or after it."""
    typed = _other_key(word[i], random)
    at = i + (random.random() < 0.5)
    return word[:at] + typed + word[at:] if typed != word[i] else word


def _swap(word: str, i: int, random: Random) -> str:
    if i + 1 == len(word):
        return word
    first, second = word[i + 1], word[i]
    if second.isupper() and first.islower():  # the shift key is held for whichever letter comes first
        first, second = first.upper(), second.lower()
    return word[:i] + first + second + word[i + 2 :]


_EDITS: dict[str, Callable[[str, int, Random], str]] = {
    "substitute": _substitute,
    "omit": _omit,
    "repeat": _repeat,
    "insert": _insert,
    "swap": _swap,
}
