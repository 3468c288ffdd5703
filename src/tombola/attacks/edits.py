"""Edits inside a word: letters swapped, dropped, inserted, or taken for look-alikes. Which letter, chance decides.

Each takes the word and random numbers, and gives None where the word is too short for it. New letters are of the script
of the word, and signs that belong to a letter, such as accents and vowel signs, move with it.
"""

from collections.abc import Callable, Sequence
from random import Random
from string import ascii_lowercase

from tombola.words.homoglyphs import SIGNS, TO_LATIN
from tombola.words.keyboard import ROWS
from tombola.words.scripts import alphabet, letters

Edit = Callable[[str, Random], str | None]


def swap(word: str, random: Random) -> str | None:
    """Two neighbouring letters change places."""
    own = letters(word)
    return _swapped(own, random.randrange(len(own) - 1)) if len(own) > 1 else None


def swap_inside(word: str, random: Random) -> str | None:
    """Two neighbouring letters change places; the first and the last stay, words of four letters or fewer too."""
    own = letters(word)
    return _swapped(own, random.randrange(1, len(own) - 2)) if len(own) > 4 else None


def substitute(word: str, random: Random) -> str | None:
    """A letter becomes another letter."""
    own = letters(word)
    i = random.randrange(len(own))
    return _joined(own[:i], random.choice(alphabet(own[i])), own[i + 1 :])


def substitute_look_alike(word: str, random: Random) -> str | None:
    """A letter becomes a sign or a Latin letter that looks like it or, where there is none, its neighbour on the
    keyboard; only Latin letters have such neighbours."""
    places = [i for i, letter in enumerate(word) if letter.lower() in ascii_lowercase or letter in TO_LATIN]
    if not places:
        return None
    i = random.choice(places)
    letter = word[i].lower()
    other = TO_LATIN.get(word[i]) or SIGNS.get(letter) or _key_beside(letter)
    return word[:i] + other + word[i + 1 :]


def delete(word: str, random: Random) -> str | None:
    """A letter is dropped."""
    own = letters(word)
    i = random.randrange(len(own))
    return _joined(own[:i], "", own[i + 1 :]) if len(own) > 1 else None


def delete_inside(word: str, random: Random) -> str | None:
    """A letter is dropped, not the first or the last."""
    own = letters(word)
    if len(own) < 3:
        return None
    i = random.randrange(1, len(own) - 1)
    return _joined(own[:i], "", own[i + 1 :])


def insert(word: str, random: Random) -> str | None:
    """A letter is put in before or after any other."""
    own = letters(word)
    i = random.randrange(len(own) + 1)
    return _joined(own[:i], random.choice(alphabet(own[min(i, len(own) - 1)])), own[i:])


def insert_blank(word: str, random: Random) -> str | None:
    """A blank breaks the word in two; words of six letters or more are left, as their parts may be words."""
    own = letters(word)
    if not 2 <= len(own) < 6:
        return None
    i = random.randrange(1, len(own))
    return _joined(own[:i], " ", own[i:])


def edited(word: str, edits: Sequence[Edit], random: Random) -> list[str]:
    """What each edit makes of the word, without repetitions and without the word itself."""
    variants = [edit(word, random) for edit in edits]
    return list(dict.fromkeys(variant for variant in variants if variant is not None and variant != word))


def _swapped(own: list[str], i: int) -> str:
    return _joined(own[:i], own[i + 1] + own[i], own[i + 2 :])


def _joined(before: list[str], middle: str, after: list[str]) -> str:
    return "".join([*before, middle, *after])


def _key_beside(letter: str) -> str:
    row = next(keys for keys, _ in ROWS if letter in keys)
    i = row.index(letter)
    return row[i + 1] if i + 1 < len(row) else row[i - 1]
