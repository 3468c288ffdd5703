"""Rare words replaced by common ones of like meaning, which is what attacks by synonyms take away. (Mozes et al. 2021)

A word that the model has hardly seen is where an attacker finds a text that reads the same and scores otherwise. The
defense maps each such word to the nearest one that the training texts have often, so that most substitutes for a common
word come back as that word or as one close to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from tombola.defenses.base import Defense, FittedDefense, Near, State, defenses
from tombola.defenses.corrector import in_case_of, key_of
from tombola.errors import TombolaError
from tombola.foundations.checksums import checksum
from tombola.words.lexicon import bundled
from tombola.words.scanning import word_spans

NEAREST = 50  # neighbours of a word that are looked at


@defenses.register
class RareWords(Defense):
    """Replaces words that the training texts hardly have by the nearest word that they have often."""

    needs_neighbours: ClassVar[bool] = True

    kind: Literal["rare_words"] = "rare_words"
    min_count: int = Field(
        10, ge=1, description="words that occur so often in the training texts stay, and replace others"
    )
    min_cosine: float = Field(0.5, ge=-1, le=1, description="least cosine of a word and its replacement")
    vectors: str | None = Field(
        None, description="a file of word vectors; null: those of the package, which are English"
    )

    @property
    def material(self) -> str | None:
        """Hash of the file of word vectors."""
        path = Path(self.vectors).expanduser() if self.vectors else None
        return checksum(path) if path is not None and path.is_file() else None

    def fit(self, texts: Iterable[str], near: Near | None = None) -> FittedRareWords:
        """Find a common word for every rare one that has vectors."""
        if near is None:
            raise TombolaError("defend: rare_words needs word vectors, and none were given")
        lexicon = None if self.vectors else bundled()
        counts = Counter(key_of(text[start:end]) for text in texts for start, end in word_spans(text))
        common = {
            word
            for word, count in counts.items()
            if count >= self.min_count and not (lexicon and lexicon.is_stop_word(word))
        }
        instead = {}
        for word in near.words:
            if counts[word] >= self.min_count or (lexicon and lexicon.is_stop_word(word)):
                continue
            for other in near.of(word, NEAREST, at_least=self.min_cosine):
                if other in common and (
                    lexicon is None or lexicon.same_part_of_speech(word, other, verbs_as_nouns=True)
                ):
                    instead[word] = other
                    break
        return FittedRareWords(self, instead)

    def restore(self, state: State) -> FittedRareWords:
        """The defense from the words and their replacements."""
        instead = state.get("instead")
        if not isinstance(instead, dict) or not all(isinstance(word, str) for word in instead.values()):
            raise ValueError("the state of a rare_words defense has words and their replacements")
        return FittedRareWords(self, instead)


class FittedRareWords(FittedDefense):
    """Replaces words.

    Args:
        settings: The settings.
        instead: Rare words and what stands in for each, both in small letters.
    """

    def __init__(self, settings: RareWords, instead: Mapping[str, str]) -> None:
        self.settings, self.instead = settings, instead

    def parts(self) -> list[dict[str, Any]]:
        """The settings and the replacements."""
        settings = self.settings.model_dump(mode="json", exclude={"vectors"})
        return [{"settings": settings, "state": {"instead": dict(self.instead)}}]

    def correct(self, text: str) -> str:
        """The text with common words for rare ones, in the case of what they replace."""
        parts, end = [], 0
        for start, stop in word_spans(text):
            word = text[start:stop]
            if (common := self.instead.get(key_of(word))) is not None:
                parts += [text[end:start], in_case_of(word, common)]
                end = stop
        return "".join([*parts, text[end:]])
