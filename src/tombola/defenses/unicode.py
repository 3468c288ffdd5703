"""Characters that pass for others, or that nobody sees, back to what a reader takes them for."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from tombola.defenses.base import Defense, FittedDefense, State, defenses
from tombola.words.homoglyphs import TO_LATIN, ZERO_WIDTH

_LATIN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ɏ]")
_LOOKS = str.maketrans(TO_LATIN)
_RUN = re.compile(r"[^\W\d_]+")
_HIDDEN = re.compile(f"[{ZERO_WIDTH}]")
# Joiners shape letters of Arabic and Indic scripts and hold emoji together. Beside Latin, Greek and Cyrillic letters
# they only hide.
_HIDDEN_IN_LATIN = re.compile(
    rf"(?<=[\x00-\u024f\u0370-\u052f])[{ZERO_WIDTH}]+(?=[\x00-\u024f\u0370-\u052f]|$)|^[{ZERO_WIDTH}]+"
)
# Letters in mathematical, full-width and enclosed dress are one letter each under NFKC. Ligatures, fractions and
# superscripts are left as they are: ½ would become 1⁄2, and x² would become x2.
_DRESSED = re.compile(r"[\uff01-\uff5e\U0001d400-\U0001d7ff\u24b6-\u24e9\u2100-\u214f]")


@defenses.register
class Unicode(Defense):
    """Undoes look-alike letters, invisible characters and letters in fancy dress."""

    kind: Literal["unicode"] = "unicode"
    homoglyphs: bool = Field(
        True, description="fold letters of other scripts inside words with Latin letters"
    )
    invisible: bool = Field(
        True, description="remove zero-width characters and soft hyphens between Latin letters"
    )
    compatibility: bool = Field(
        True, description="write full-width, mathematical and circled letters plainly"
    )

    def fit(self, texts: Iterable[str]) -> "FittedUnicode":
        """Nothing is learned."""
        return FittedUnicode(self)

    def restore(self, state: State) -> "FittedUnicode":
        """The defense again, which has no state."""
        if state:
            raise ValueError("the state of a unicode defense is empty")
        return FittedUnicode(self)


class FittedUnicode(FittedDefense):
    """Corrects characters."""

    def __init__(self, settings: Unicode) -> None:
        self.settings = settings

    def parts(self) -> list[dict[str, Any]]:
        """The settings alone."""
        return [{"settings": self.settings.model_dump(mode="json"), "state": {}}]

    def correct(self, text: str) -> str:
        """The text in plain characters; ASCII texts are returned at once."""
        if text.isascii():
            return text
        if self.settings.compatibility:
            text = _DRESSED.sub(_plain, text)
        if self.settings.invisible and _HIDDEN.search(text):
            text = _HIDDEN_IN_LATIN.sub("", text)
        if self.settings.homoglyphs:
            text = _RUN.sub(_folded, text)
        return text


def _plain(match: re.Match[str]) -> str:
    plain = unicodedata.normalize("NFKC", match.group())
    return plain if len(plain) == 1 and plain.isascii() else match.group()


def _folded(match: re.Match[str]) -> str:
    """A run of letters, folded if that makes it wholly Latin and it was partly so: no one mixes scripts in a word."""
    word = match.group()
    if word.isascii() or not _LATIN.search(word):
        return word
    folded = word.translate(_LOOKS)
    return folded if all(_LATIN.match(letter) for letter in folded) else word
