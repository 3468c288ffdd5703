"""The noisy channel: the probability that a word is typed as another string, by human slips or by attacks.

The probability of each edit is half that of human errors (see `augmentations.typos` for the sources), half that of
DeepWordBug and TextBugger, which swap, substitute, delete and insert equally often, with all letters equally likely.
The position in the word is uniform.
"""

from math import log

from tombola.words.homoglyphs import SIGNS, TO_LATIN
from tombola.words.keyboard import NEIGHBOURS

OMIT = log(0.245)  # a missing letter
OMIT_DOUBLE = log(0.35)  # a missing one of two equal letters
SWAP = log(0.175)
SUBSTITUTE_KEY = log(0.05)  # one of about four neighbouring keys
SUBSTITUTE_LOOK = log(0.05)  # a letter that looks like the right one
SUBSTITUTE_VOWEL = log(0.02)  # a vowel for another: misspelt rather than mistyped
SUBSTITUTE = log(0.007)  # any other letter
INSERT_DOUBLE = log(0.05)
INSERT_KEY = log(0.015)  # a neighbouring key of an adjacent letter
INSERT = log(0.006)
SECOND = log(0.05)  # a second error in the word

_VOWELS = frozenset("aeiouy")
_SAME = {look: letter for letter, look in SIGNS.items()} | TO_LATIN
IMPOSSIBLE = float("-inf")


def log_likelihood(intended: str, typed: str, edits: int) -> float:
    """Return the log-probability that a word is typed as this string, given that it has errors.

    Args:
        intended: The word.
        typed: The typed string, different from the word.
        edits: The maximum number of errors, 1 or 2. If there are more, the result is minus infinity.
    """
    shorter = min(len(intended), len(typed))
    start = 0
    while start < shorter and intended[start] == typed[start]:
        start += 1
    end = 0
    while end < shorter - start and intended[-1 - end] == typed[-1 - end]:
        end += 1
    before = intended[start - 1] if start else ""
    after = intended[len(intended) - end] if end else ""
    middle, found = intended[start : len(intended) - end], typed[start : len(typed) - end]
    place = -log(len(intended) + 1)
    single = _one(middle, found, before, after)
    if single != IMPOSSIBLE:
        return single + place
    if edits < 2 or abs(len(middle) - len(found)) > 2:
        return IMPOSSIBLE
    return _two(middle, found, before, after) + SECOND + 2 * place


def _two(a: str, b: str, before: str, after: str) -> float:
    """Score two errors, the first at the first differing letter."""
    best = IMPOSSIBLE
    if a and b:
        best = _substituted(a[0], b[0]) + _rest(a[1:], b[1:], a[0], after)
    if a:
        best = max(best, _omitted(a[0], before) + _rest(a[1:], b, a[0], after))
    if b:
        best = max(best, _inserted(b[0], before, a[:1] or after) + _rest(a, b[1:], before, after))
    if len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0]:
        best = max(best, SWAP + _rest(a[2:], b[2:], a[1], after))
    return best


def _rest(a: str, b: str, before: str, after: str) -> float:
    """Score the rest after the first of two errors, which must differ by one."""
    start, shorter = 0, min(len(a), len(b))
    while start < shorter and a[start] == b[start]:
        start += 1
    return _one(a[start:], b[start:], a[start - 1] if start else before, after)


def _one(a: str, b: str, before: str, after: str) -> float:
    """Score one error between two strings that differ at both ends."""
    match len(a), len(b):
        case 1, 1:
            return _substituted(a, b)
        case 1, 0:
            return _omitted(a, before)
        case 0, 1:
            return _inserted(b, before, after)
        case 2, 2 if a[0] == b[1] and a[1] == b[0]:
            return SWAP
    return IMPOSSIBLE


def _substituted(letter: str, typed: str) -> float:
    if typed in NEIGHBOURS.get(letter, ""):
        return SUBSTITUTE_KEY
    if SIGNS.get(letter) == typed or _SAME.get(typed) == letter:
        return SUBSTITUTE_LOOK
    if letter.isascii() and not typed.isascii():
        return IMPOSSIBLE  # nobody types é for e by mistake: it is another word
    return SUBSTITUTE_VOWEL if letter in _VOWELS and typed in _VOWELS else SUBSTITUTE


def _omitted(letter: str, before: str) -> float:
    return OMIT_DOUBLE if letter == before else OMIT


def _inserted(typed: str, before: str, after: str) -> float:
    if typed in (before, after):
        return INSERT_DOUBLE
    if not typed.isascii() and (before or after).isascii():
        return IMPOSSIBLE
    near = NEIGHBOURS.get(typed, "")
    return INSERT_KEY if (before and before in near) or (after and after in near) else INSERT
