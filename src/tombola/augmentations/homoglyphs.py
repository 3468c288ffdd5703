"""Look-alike letters and invisible characters."""

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
    some,
    spans_of,
)
from tombola.words.homoglyphs import CYRILLIC, GREEK, SIGNS

_TABLES = {"cyrillic": CYRILLIC, "greek": GREEK, "signs": SIGNS}
ZERO_WIDTH_SPACE = "\u200b"


@augmentations.register
class Homoglyphs(Augmentation):
    """Look-alikes of letters: Cyrillic, Greek, signs such as 0 for o, or a zero-width space between two letters."""

    by_words: ClassVar[bool] = True
    kind: Literal["homoglyphs"] = "homoglyphs"
    looks: tuple[Literal["cyrillic", "greek", "signs", "zero_width"], ...] = Field(
        ("cyrillic", "greek", "signs", "zero_width"), min_length=1, description="kinds of look-alikes to use"
    )
    share: float = Field(0.2, ge=0, le=1, description="share of the words to change")
    max_edits: int = Field(1, ge=1, description="maximum letters to change per word")

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Replace letters of some words with look-alikes."""
        spans = [span for span in spans_of(text) if self._possible(text[slice(*span)])]
        chosen = [spans[i] for i in some(len(spans), self.share, random)]
        return replace(text, chosen, [self._disguise(text[slice(*span)], random) for span in chosen])

    def _possible(self, word: str) -> bool:
        return any(self._places(word, look) for look in self.looks)

    def _places(self, word: str, look: str) -> list[int]:
        if look == "zero_width":
            return list(range(1, len(word)))
        return [i for i, letter in enumerate(word) if letter in _TABLES[look]]

    def _disguise(self, word: str, random: Random) -> str:
        number = 1 + int(random.random() * self.max_edits)
        for _ in range(number):
            looks = [look for look in self.looks if self._places(word, look)]
            if not looks:
                break
            look = pick(looks, random)
            i = pick(self._places(word, look), random)
            word = (
                word[:i] + ZERO_WIDTH_SPACE + word[i:]
                if look == "zero_width"
                else word[:i] + _TABLES[look][word[i]] + word[i + 1 :]
            )
        return word
