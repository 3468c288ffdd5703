"""What an augmentation is: settings, and one function from a text and random numbers to a text of the same label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Protocol, TypeVar

from tombola.foundations.choices import Choice, Choices
from tombola.words.scanning import word_spans

T = TypeVar("T")


class Synonyms(Protocol):
    """What the synonym augmentation asks of a lexicon, which must be hashable: what it says is cached."""

    def __hash__(self) -> int: ...

    def synonyms(self, word: str) -> Sequence[str]:
        """The word's synonyms, the commonest first; none if it is unknown."""
        ...

    def same_part_of_speech(self, word: str, other: str) -> bool:
        """Whether both words can be of one part of speech."""
        ...

    def is_stop_word(self, word: str) -> bool:
        """Whether the word carries grammar rather than content."""
        ...


@dataclass(frozen=True)
class Resources:
    """What augmentations may need besides the text."""

    synonyms: Synonyms | None = None


NOTHING = Resources()


augmentations: Choices[type[Augmentation]] = Choices(
    "augmentation",
    [f"tombola.augmentations.{name}" for name in ("homoglyphs", "surface", "synonyms", "typos")],
)
"""Augmentations by `kind`."""


class Augmentation(Choice, ABC):
    """Settings of a change that leaves a text's label as it is."""

    choices: ClassVar = augmentations
    by_name: ClassVar[bool] = True
    by_words: ClassVar[bool] = False
    """Whether it changes words of Latin, Greek and Cyrillic letters alone."""

    @abstractmethod
    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Change the text.

        Args:
            text: One text of an example.
            random: Its own random numbers. Only `random.random()` is to be called: Python promises that its
                numbers never change, which it does not of `choice` and the like.
            resources: What else there is, such as a lexicon.
        """

    def check(self, resources: Resources) -> None:
        """Raise a `TombolaError` if something is missing that `apply` needs."""
        return None


def pick(things: Sequence[T], random: Random) -> T:
    """One of several, all equally likely."""
    return things[int(random.random() * len(things))]


def some(count: int, share: float, random: Random) -> list[int]:
    """The numbers of about `share` of `count` things, in order: as many as the share says, rounded at random."""
    number = int(share * count + random.random())
    chosen = sorted((random.random(), i) for i in range(count))[:number] if number < count else None
    return list(range(count)) if chosen is None else sorted(i for _, i in chosen)


def replace(text: str, spans: Sequence[tuple[int, int]], pieces: Sequence[str]) -> str:
    """The text with other pieces in the place of some spans, which are in order and do not overlap."""
    parts, end = [], 0
    for (start, stop), piece in zip(spans, pieces, strict=True):
        parts += [text[end:start], piece]
        end = stop
    return "".join([*parts, text[end:]])


def spans_of(text: str) -> list[tuple[int, int]]:
    """Where the words are that an augmentation may touch."""
    return list(word_spans(text))
