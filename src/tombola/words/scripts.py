"""Letters of any script: where one ends and the next begins, and which others it could be mistaken for."""

import re
from functools import lru_cache
from string import ascii_lowercase
from unicodedata import category, name

MARKS = "".join(
    chr(code) for code in (*range(0x300, 0x1E00), *range(0xA660, 0xAC00)) if category(chr(code))[0] == "M"
)
"""Signs that belong to the letter before them: accents, vowel signs of Arabic, Hebrew and the scripts of India …"""
JOINERS = "\u200c\u200d"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, which stand side by side without blanks; each is read as a word."""

NEARBY = 16  # places in Unicode from a letter to those that may replace it

_LETTER = re.compile(rf".[{MARKS}{JOINERS}]*", re.DOTALL)


def letters(word: str) -> list[str]:
    """The letters of a word, each with the signs that belong to it."""
    return _LETTER.findall(word)


@lru_cache(maxsize=10_000)
def alphabet(letter: str) -> str:
    """The letters that may stand in the place of one: others of its script, near it in Unicode; a to z for Latin.

    Alphabets lie in their order there, and of Chinese characters those of the same radical and of Korean syllables
    those of the same sounds lie side by side.
    """
    base = letter[:1]
    script = _script(base)
    if script in ("", "LATIN"):
        return ascii_lowercase
    kinds = ("Ll",) if category(base) in ("Ll", "Lu") else (category(base),)
    start = ord(base.lower()) if len(base.lower()) == 1 else ord(base)
    near = map(chr, range(max(0, start - NEARBY), start + NEARBY + 1))
    found = "".join(one for one in near if one != base and category(one) in kinds and _script(one) == script)
    return found or ascii_lowercase


def _script(letter: str) -> str:
    """The first word of a letter's name, which is its script; empty for what is no letter."""
    return name(letter, "").partition(" ")[0] if letter and category(letter)[0] == "L" else ""
