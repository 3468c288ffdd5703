"""Map look-alike and invisible characters back to what a reader sees."""

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
# they are only a disguise.
_HIDDEN_IN_LATIN = re.compile(
    rf"(?<=[\x00-\u024f\u0370-\u052f])[{ZERO_WIDTH}]+(?=[\x00-\u024f\u0370-\u052f]|$)|^[{ZERO_WIDTH}]+"
)
# Mathematical, full-width and enclosed letters are one letter each under NFKC. Ligatures, fractions and superscripts
# are left alone: ½ would become 1⁄2, and x² would become x2.
_DRESSED = re.compile(r"[\uff01-\uff5e\U0001d400-\U0001d7ff\u24b6-\u24e9\u2100-\u214f]")


@defenses.register
class Unicode(Defense):
    """Undoes look-alike letters, invisible characters and stylised letters."""

    kind: Literal["unicode"] = "unicode"
    homoglyphs: bool = Field(
        True, description="replace look-alikes from other scripts in words with Latin letters"
    )
    invisible: bool = Field(
        True, description="remove zero-width characters and soft hyphens between Latin letters"
    )
    compatibility: bool = Field(
        True, description="replace full-width, mathematical and circled letters with plain ones"
    )

    def fit(self, texts: Iterable[str]) -> "FittedUnicode":
        """Return the fitted defense; there is nothing to learn."""
        return FittedUnicode(self)

    def restore(self, state: State) -> "FittedUnicode":
        """Restore the defense, which has no state."""
        if state:
            raise ValueError("the state of a unicode defense is empty")
        return FittedUnicode(self)


class FittedUnicode(FittedDefense):
    """Corrects characters."""

    def __init__(self, settings: Unicode) -> None:
        self.settings = settings

    def parts(self) -> list[dict[str, Any]]:
        """Return the settings; there is no state."""
        return [{"settings": self.settings.model_dump(mode="json"), "state": {}}]

    def correct(self, text: str) -> str:
        """Return the text in plain characters; ASCII texts are returned unchanged."""
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
    """Fold a word that mixes Latin with look-alikes, if that makes it wholly Latin: nobody mixes scripts in a word."""
    word = match.group()
    if word.isascii() or not _LATIN.search(word):
        return word
    folded = word.translate(_LOOKS)
    return folded if all(_LATIN.match(letter) for letter in folded) else word
