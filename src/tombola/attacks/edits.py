"""Edits inside a word: letters swapped, dropped, inserted, or taken for look-alikes. Which letter, chance decides.

Each takes the word and random numbers, and gives None where the word is too short for it.
"""

from collections.abc import Callable, Sequence
from random import Random
from string import ascii_lowercase

from tombola.words.homoglyphs import SIGNS
from tombola.words.keyboard import ROWS

Edit = Callable[[str, Random], str | None]


def swap(word: str, random: Random) -> str | None:
    """Two neighbouring letters change places."""
    return _swapped(word, random.randrange(len(word) - 1)) if len(word) > 1 else None


def swap_inside(word: str, random: Random) -> str | None:
    """Two neighbouring letters change places; the first and the last stay, words of four letters or fewer too."""
    return _swapped(word, random.randrange(1, len(word) - 2)) if len(word) > 4 else None


def substitute(word: str, random: Random) -> str | None:
    """A letter becomes another letter."""
    i = random.randrange(len(word))
    return word[:i] + random.choice(ascii_lowercase) + word[i + 1 :]


def substitute_look_alike(word: str, random: Random) -> str | None:
    """A letter becomes a sign that looks like it or, where there is none, its neighbour on the keyboard."""
    places = [i for i, letter in enumerate(word) if letter.lower() in ascii_lowercase]
    if not places:
        return None
    i = random.choice(places)
    letter = word[i].lower()
    return word[:i] + (SIGNS.get(letter) or _key_beside(letter)) + word[i + 1 :]


def delete(word: str, random: Random) -> str | None:
    """A letter is dropped."""
    i = random.randrange(len(word))
    return word[:i] + word[i + 1 :] if len(word) > 1 else None


def delete_inside(word: str, random: Random) -> str | None:
    """A letter is dropped, not the first or the last."""
    if len(word) < 3:
        return None
    i = random.randrange(1, len(word) - 1)
    return word[:i] + word[i + 1 :]


def insert(word: str, random: Random) -> str | None:
    """A letter is put in before or after any other."""
    i = random.randrange(len(word) + 1)
    return word[:i] + random.choice(ascii_lowercase) + word[i:]


def insert_blank(word: str, random: Random) -> str | None:
    """A blank breaks the word in two; words of six letters or more are left, as their parts may be words."""
    if not 2 <= len(word) < 6:
        return None
    i = random.randrange(1, len(word))
    return f"{word[:i]} {word[i:]}"


def edited(word: str, edits: Sequence[Edit], random: Random) -> list[str]:
    """What each edit makes of the word, without repetitions and without the word itself."""
    variants = [edit(word, random) for edit in edits]
    return list(dict.fromkeys(variant for variant in variants if variant is not None and variant != word))


def _swapped(word: str, i: int) -> str:
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _key_beside(letter: str) -> str:
    row = next(keys for keys, _ in ROWS if letter in keys)
    i = row.index(letter)
    return row[i + 1] if i + 1 < len(row) else row[i - 1]
