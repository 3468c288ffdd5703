"""Words replaced by synonyms, or by words with a similar vector, of the same part of speech."""

from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.augmentations.base import (
    NOTHING,
    Augmentation,
    Resources,
    Synonyms,
    WordNeighbours,
    augmentations,
    pick,
    replace,
    some,
    spans_of,
)
from tombola.errors import TombolaError

WIDTH = 50
"""The number of neighbours to look at for those of the same part of speech."""


@augmentations.register
class SynonymSwaps(Augmentation):
    """Synonyms from a lexicon, or neighbours by word vectors, in the case of the replaced word.

    A lexicon lists base forms, so a synonym counts only if the relation is mutual: `films`, which would become
    `movie`, is left alone. So are capitalised words inside a text, which may be names. Neighbours are the words that
    TextFooler tries; some of them only belong to the same topic.
    """

    kind: Literal["synonyms"] = "synonyms"
    share: float = Field(0.2, ge=0, le=1, description="share to replace of the words that have a synonym")
    nearest: int = Field(
        3, ge=1, description="number of synonyms to choose from, the most common or nearest first"
    )
    source: Literal["lexicon", "neighbours", "both"] = Field(
        "lexicon", description="synonyms of the lexicon, words with a similar vector, or both"
    )
    min_cosine: float = Field(
        0.5, ge=-1, le=1, description="neighbours: minimum cosine similarity, on the scale of TextFooler"
    )

    @model_validator(mode="after")
    def _similarity_of_neighbours(self) -> Self:
        if self.source == "lexicon" and self.min_cosine != type(self).model_fields["min_cosine"].default:
            raise ValueError("min_cosine: only works with source: neighbours or both; leave it out")
        return self

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Replace some of the words that have a synonym."""
        others = partial(self._others, resources=resources)
        replaceable = [
            (span, synonyms)
            for span in spans_of(text)
            if not _may_be_name(text, *span) and (synonyms := others(text[slice(*span)].lower()))
        ]
        chosen = [replaceable[i] for i in some(len(replaceable), self.share, random)]
        words = [_in_case_of(text[slice(*span)], pick(synonyms, random)) for span, synonyms in chosen]
        return replace(text, [span for span, _ in chosen], words)

    def check(self, resources: Resources) -> None:
        """Raise an error without a lexicon, or without the neighbours that the settings ask for."""
        self._lexicon(resources)
        if self.source != "lexicon":
            self._neighbours(resources)

    def _others(self, word: str, resources: Resources) -> tuple[str, ...]:
        """Return the words that may replace a word."""
        lexicon = self._lexicon(resources)
        others: tuple[str, ...] = ()
        if self.source != "neighbours":
            others += _synonyms(word, lexicon, self.nearest)
        if self.source != "lexicon":
            others += _near(word, lexicon, self._neighbours(resources), self.nearest, self.min_cosine)
        return tuple(dict.fromkeys(others))

    def _neighbours(self, resources: Resources) -> WordNeighbours:
        if resources.neighbours is None:
            raise TombolaError(
                f"augment: synonyms with source: {self.source} needs word neighbours, but none were given"
            )
        return resources.neighbours()

    def _lexicon(self, resources: Resources) -> Synonyms:
        if resources.synonyms is None:
            raise TombolaError("augment: synonyms needs a lexicon, but none was given")
        return resources.synonyms


def uses_neighbours(augmentation: Augmentation) -> bool:
    """Return whether an augmentation looks words up in the table of neighbours."""
    return isinstance(augmentation, SynonymSwaps) and augmentation.source != "lexicon"


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


@lru_cache(maxsize=100_000)
def _near(
    word: str, lexicon: Synonyms, neighbours: WordNeighbours, nearest: int, min_cosine: float
) -> tuple[str, ...]:
    if lexicon.is_stop_word(word):
        return ()
    alike = (
        other for other in neighbours.of(word, WIDTH, min_cosine) if lexicon.same_part_of_speech(word, other)
    )
    return tuple(islice(alike, nearest))


def _may_be_name(text: str, start: int, end: int) -> bool:
    return start > 0 and text[start].isupper() and not text[start:end].isupper()


def _in_case_of(word: str, other: str) -> str:
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word[0].isupper() else other
