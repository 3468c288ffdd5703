"""Words replaced by synonyms of the same part of speech."""

from functools import lru_cache
from itertools import islice
from random import Random
from typing import Literal

from pydantic import Field

from tombola.augmentations.base import (
    NOTHING,
    Augmentation,
    Resources,
    Synonyms,
    augmentations,
    pick,
    replace,
    some,
    spans_of,
)
from tombola.errors import TombolaError


@augmentations.register
class SynonymSwaps(Augmentation):
    """Synonyms from a lexicon, in the case of the replaced word.

    A lexicon lists base forms, so a synonym counts only if the relation is mutual: `films`, which would become
    `movie`, is left alone. So are capitalised words inside a text, which may be names.
    """

    kind: Literal["synonyms"] = "synonyms"
    share: float = Field(0.2, ge=0, le=1, description="share to replace of the words that have a synonym")
    nearest: int = Field(3, ge=1, description="number of synonyms to choose from, the most common first")

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Replace some of the words that have a synonym."""
        lexicon = self._lexicon(resources)
        found = [
            (span, synonyms)
            for span in spans_of(text)
            if not _may_be_name(text, *span)
            and (synonyms := _synonyms(text[slice(*span)].lower(), lexicon, self.nearest))
        ]
        chosen = [found[i] for i in some(len(found), self.share, random)]
        words = [_in_case_of(text[slice(*span)], pick(synonyms, random)) for span, synonyms in chosen]
        return replace(text, [span for span, _ in chosen], words)

    def check(self, resources: Resources) -> None:
        """Raise an error without a lexicon."""
        self._lexicon(resources)

    def _lexicon(self, resources: Resources) -> Synonyms:
        if resources.synonyms is None:
            raise TombolaError("augment: the kind synonyms needs a lexicon, and none was given")
        return resources.synonyms


@lru_cache(maxsize=100_000)
def _synonyms(word: str, lexicon: Synonyms, nearest: int) -> tuple[str, ...]:
    if lexicon.is_stop_word(word):
        return ()
    mutual = (
        other
        for other in lexicon.synonyms(word)
        if lexicon.same_part_of_speech(word, other) and word in lexicon.synonyms(other)
    )
    return tuple(islice(mutual, nearest))


def _may_be_name(text: str, start: int, end: int) -> bool:
    return start > 0 and text[start].isupper() and not text[start:end].isupper()


def _in_case_of(word: str, other: str) -> str:
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word[0].isupper() else other
