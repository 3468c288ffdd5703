"""Letters of any script: how to split a word into them, and which letters may replace one."""

import re
from functools import lru_cache
from string import ascii_lowercase
from unicodedata import category, name

MARKS = "".join(
    chr(code) for code in (*range(0x300, 0x1E00), *range(0xA660, 0xAC00)) if category(chr(code))[0] == "M"
)
"""Combining marks of the letter before them: accents, vowel signs of Arabic, Hebrew and the scripts of India …"""
JOINERS = "\u200c\u200d"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, which are written without spaces; each counts as a word."""

NEARBY = 16  # distance in Unicode from a letter to its replacements

_LETTER = re.compile(rf".[{MARKS}{JOINERS}]*", re.DOTALL)


def letters(word: str) -> list[str]:
    """Return the letters of a word, each with its combining marks."""
    return _LETTER.findall(word)


@lru_cache(maxsize=10_000)
def alphabet(letter: str) -> str:
    """Return the letters that may replace one: others of its script, near it in Unicode; a to z for Latin.

    Unicode lists alphabets in order, Chinese characters of the same radical together, and Korean syllables of the
    same sounds together.
    """
    base = letter[:1]
    script = _script(base)
    if script in ("", "LATIN"):
        return ascii_lowercase
    kinds = ("Ll",) if category(base) in ("Ll", "Lu") else (category(base),)
    start = ord(base.lower()) if len(base.lower()) == 1 else ord(base)
    near = map(chr, range(max(0, start - NEARBY), start + NEARBY + 1))
    letters = "".join(
        letter
        for letter in near
        if letter != base and category(letter) in kinds and _script(letter) == script
    )
    return letters or ascii_lowercase


def _script(letter: str) -> str:
    """Return a letter's script, the first word of its Unicode name; empty for other characters."""
    return name(letter, "").partition(" ")[0] if letter and category(letter)[0] == "L" else ""
