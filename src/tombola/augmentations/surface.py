"""Surface changes that keep a text's words: case, punctuation, white space."""

import re
from collections.abc import Callable
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

MARKS = (",", ".", ";", ":", "!", "?")
_MARK = re.compile(r"[ \t]*[,.;:!?]+(?=\s|$)")
_GAP = re.compile(r"(?<=\w)[ \t]+(?=\w)")
_BLANK = re.compile(r"[ \t]+")
_BEFORE_MARK = re.compile(r"(?<=\w)[ \t]+(?=[,.;:!?])")


@augmentations.register
class Casing(Augmentation):
    """Another capitalisation, chosen at random for each text."""

    by_words: ClassVar[bool] = True
    kind: Literal["casing"] = "casing"
    forms: tuple[Literal["lower", "upper", "title"], ...] = Field(
        ("lower", "upper", "title"), min_length=1, description="forms to choose from"
    )
    share: float = Field(1.0, ge=0, le=1, description="share of the words to change")

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Write some of the words, or all of them, in another case."""
        change = _CASES[pick(self.forms, random)]
        spans = spans_of(text)
        chosen = [spans[i] for i in some(len(spans), self.share, random)]
        return replace(text, chosen, [change(text[slice(*span)]) for span in chosen])


_CASES: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper, "title": str.capitalize}


@augmentations.register
class Punctuation(Augmentation):
    """Missing and additional punctuation marks between words. (the latter: Karimi et al. 2021, AEDA)"""

    kind: Literal["punctuation"] = "punctuation"
    drop: float = Field(0.3, ge=0, le=1, description="share of the marks to drop")
    insert: float = Field(
        0.1, ge=0, le=1, description="share of the gaps between words to insert a mark into"
    )

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Drop some marks and insert some; those inside words and numbers stay."""
        dropped = [match.span() for match in _MARK.finditer(text) if match.start()]
        dropped = [dropped[i] for i in some(len(dropped), self.drop, random)]
        gaps = [match.span() for match in _GAP.finditer(text)]
        gaps = [gaps[i] for i in some(len(gaps), self.insert, random)]
        marks = [pick(MARKS, random) + text[slice(*gap)] for gap in gaps]
        edits = sorted([*((span, "") for span in dropped), *zip(gaps, marks, strict=True)])
        return replace(text, [span for span, _ in edits], [piece for _, piece in edits])


@augmentations.register
class Whitespace(Augmentation):
    """Spaces doubled, turned into tabs, dropped next to punctuation, or inserted into words."""

    kind: Literal["whitespace"] = "whitespace"
    edits: tuple[Literal["double", "tab", "tighten", "split"], ...] = Field(
        ("double", "tighten", "split"),
        min_length=1,
        description="tighten: `good .` becomes `good.`; split: `good` becomes `go od`",
    )
    share: float = Field(0.15, ge=0, le=1, description="share of the possible places to edit")

    def apply(self, text: str, random: Random, resources: Resources = NOTHING) -> str:
        """Draw one of the edits, and apply it in some places."""
        places = _PLACES[pick(self.edits, random)](text, random)
        chosen = [places[i] for i in some(len(places), self.share, random)]
        return replace(text, [span for span, _ in chosen], [piece for _, piece in chosen])


Places = list[tuple[tuple[int, int], str]]


def _doubled(text: str, random: Random) -> Places:
    return [(match.span(), match.group() + " ") for match in _BLANK.finditer(text)]


def _tabbed(text: str, random: Random) -> Places:
    return [(match.span(), "\t") for match in _BLANK.finditer(text) if match.group() != "\t"]


def _tightened(text: str, random: Random) -> Places:
    return [(match.span(), "") for match in _BEFORE_MARK.finditer(text)]


def _split(text: str, random: Random) -> Places:
    """Return a space inside each word of two to five letters, as in TextBugger: parts of longer words may be words."""
    gaps = []
    for start, end in spans_of(text):
        if 2 <= end - start <= 5:
            at = start + 1 + int(random.random() * (end - start - 1))
            gaps.append(((at, at), " "))
    return gaps


_PLACES: dict[str, Callable[[str, Random], Places]] = {
    "double": _doubled,
    "tab": _tabbed,
    "tighten": _tightened,
    "split": _split,
}
