"""Random edits inside a word: letters swapped, deleted, inserted or replaced by look-alikes.

Each function takes the word and a random generator, and returns None if the word is too short. New letters come from
the word's script, and combining marks, such as accents and vowel signs, move with their letter.
"""

from collections.abc import Callable, Sequence
from random import Random
from string import ascii_lowercase

from tombola.words.homoglyphs import SIGNS, TO_LATIN
from tombola.words.keyboard import ROWS
from tombola.words.scripts import alphabet, letters

Edit = Callable[[str, Random], str | None]


def swap(word: str, random: Random) -> str | None:
    """Swap two neighbouring letters."""
    parts = letters(word)
    return _swapped(parts, random.randrange(len(parts) - 1)) if len(parts) > 1 else None


def swap_inside(word: str, random: Random) -> str | None:
    """Swap two neighbouring letters, except the first and the last, in words of more than four letters."""
    parts = letters(word)
    return _swapped(parts, random.randrange(1, len(parts) - 2)) if len(parts) > 4 else None


def substitute(word: str, random: Random) -> str | None:
    """Replace a letter with another one."""
    parts = letters(word)
    i = random.randrange(len(parts))
    return _joined(parts[:i], random.choice(alphabet(parts[i])), parts[i + 1 :])


def substitute_look_alike(word: str, random: Random) -> str | None:
    """Replace a letter with a sign or Latin letter that looks like it or, if there is none, with its neighbour on the
    keyboard; only Latin letters have such neighbours."""
    places = [i for i, letter in enumerate(word) if letter.lower() in ascii_lowercase or letter in TO_LATIN]
    if not places:
        return None
    i = random.choice(places)
    letter = word[i].lower()
    other = TO_LATIN.get(word[i]) or SIGNS.get(letter) or _key_beside(letter)
    return word[:i] + other + word[i + 1 :]


def delete(word: str, random: Random) -> str | None:
    """Delete a letter."""
    parts = letters(word)
    i = random.randrange(len(parts))
    return _joined(parts[:i], "", parts[i + 1 :]) if len(parts) > 1 else None


def delete_inside(word: str, random: Random) -> str | None:
    """Delete a letter, except the first and the last."""
    parts = letters(word)
    if len(parts) < 3:
        return None
    i = random.randrange(1, len(parts) - 1)
    return _joined(parts[:i], "", parts[i + 1 :])


def insert(word: str, random: Random) -> str | None:
    """Insert a letter at any position."""
    parts = letters(word)
    i = random.randrange(len(parts) + 1)
    return _joined(parts[:i], random.choice(alphabet(parts[min(i, len(parts) - 1)])), parts[i:])


def insert_blank(word: str, random: Random) -> str | None:
    """Split the word with a space; words of six letters or more are left alone, as their parts may be words."""
    parts = letters(word)
    if not 2 <= len(parts) < 6:
        return None
    i = random.randrange(1, len(parts))
    return _joined(parts[:i], " ", parts[i:])


def edited(word: str, edits: Sequence[Edit], random: Random) -> list[str]:
    """Return the results of all edits, without duplicates and without the word itself."""
    variants = [edit(word, random) for edit in edits]
    return list(dict.fromkeys(variant for variant in variants if variant is not None and variant != word))


def _swapped(parts: list[str], i: int) -> str:
    return _joined(parts[:i], parts[i + 1] + parts[i], parts[i + 2 :])


def _joined(before: list[str], middle: str, after: list[str]) -> str:
    return "".join([*before, middle, *after])


def _key_beside(letter: str) -> str:
    row = next(keys for keys, _ in ROWS if letter in keys)
    i = row.index(letter)
    return row[i + 1] if i + 1 < len(row) else row[i - 1]
