"""The interface of augmentations: settings, and a function that changes a text at random but not its label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Protocol, TypeVar

from tombola.foundations.choices import Choice, Choices
from tombola.words.scanning import word_spans

T = TypeVar("T")


class Synonyms(Protocol):
    """The lexicon interface of the synonym augmentation. It must be hashable, since its answers are cached."""

    def __hash__(self) -> int: ...

    def synonyms(self, word: str) -> Sequence[str]:
        """Return the word's synonyms, most common first; none if it is unknown."""
        ...

    def same_part_of_speech(self, word: str, other: str) -> bool:
        """Return whether both words can have the same part of speech."""
        ...

    def is_stop_word(self, word: str) -> bool:
        """Return whether the word carries grammar rather than content."""
        ...


class WordNeighbours(Protocol):
    """The nearest neighbours of words, by their vectors. Hashable like the lexicon."""

    def __hash__(self) -> int: ...

    def of(self, word: str, k: int, at_least: float = -1.0) -> Sequence[str]:
        """Return those of the `k` nearest words that are near enough, nearest first."""
        ...


@dataclass(frozen=True)
class Resources:
    """Resources that augmentations may need besides the text.

    Args:
        synonyms: The lexicon.
        neighbours: Returns the table of word neighbours, which is loaded only if an augmentation uses it.
    """

    synonyms: Synonyms | None = None
    neighbours: Callable[[], WordNeighbours] | None = None


NOTHING = Resources()


augmentations: Choices[type[Augmentation]] = Choices(
    "augmentation",
    [f"tombola.augmentations.{name}" for name in ("homoglyphs", "surface", "synonyms", "typos")],
)
"""Augmentations by `kind`."""


class Augmentation(Choice, ABC):
    """Settings of a change that preserves a text's label."""

    choices: ClassVar = augmentations
    by_name: ClassVar[bool] = True
    by_words: ClassVar[bool] = False
    """Whether it changes only words of Latin, Greek and Cyrillic letters."""

    @abstractmethod
    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Change the text.

        Args:
            text: One text of an example.
            random: The text's own generator. Call only `random.random()`: Python guarantees that its numbers never
                change, unlike those of `choice` and the like.
            resources: Other resources, such as a lexicon.
        """

    def check(self, resources: Resources) -> None:
        """Raise a `TombolaError` if a resource that `apply` needs is missing."""
        return None


def pick(things: Sequence[T], random: Random) -> T:
    """Return one of several things, all equally likely."""
    return things[int(random.random() * len(things))]


def some(count: int, share: float, random: Random) -> list[int]:
    """Return the sorted indices of a random `share` of `count` things, with the number rounded at random."""
    number = int(share * count + random.random())
    chosen = sorted((random.random(), i) for i in range(count))[:number] if number < count else None
    return list(range(count)) if chosen is None else sorted(i for _, i in chosen)


def replace(text: str, spans: Sequence[tuple[int, int]], pieces: Sequence[str]) -> str:
    """Replace spans of the text, which are in order and do not overlap, with other pieces."""
    parts, end = [], 0
    for (start, stop), piece in zip(spans, pieces, strict=True):
        parts += [text[end:start], piece]
        end = stop
    return "".join([*parts, text[end:]])


def spans_of(text: str) -> list[tuple[int, int]]:
    """Return the spans of the words that an augmentation may change."""
    return list(word_spans(text))
