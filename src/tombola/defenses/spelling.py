"""Spelling correction: what a recipe may say about it, and how it is fitted to the training texts."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

from pydantic import Field

from tombola.defenses.base import Defense, State, defenses
from tombola.defenses.corrector import FittedSpelling, key_of, tokens
from tombola.words.english import english


@defenses("spelling")
class Spelling(Defense):
    """Corrects misspelt words to words of the training texts and of an English dictionary."""

    kind: Literal["spelling"] = "spelling"
    dictionary: Literal["english"] | None = Field(
        "english", description="words that are known besides those of the training texts; null: none"
    )
    context: bool = Field(True, description="weigh candidates by the words beside them as well")
    keep: tuple[str, ...] = Field((), description="words that are never changed, besides those of the training texts")
    max_pairs: int = Field(200_000, ge=0, description="pairs of neighbouring words to remember, the most frequent")

    def fit(self, texts: Iterable[str]) -> FittedSpelling:
        """Count words and pairs of words."""
        words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for text in texts:
            found = [key_of(token.text) for token in tokens(text)]
            words.update(found)
            if self.context:
                pairs.update(pairwise(found))
        frequent = sorted((item for item in pairs.items() if item[1] > 1), key=lambda item: (-item[1], item[0]))
        return FittedSpelling(self, dict(sorted(words.items())), dict(frequent[: self.max_pairs]), self._dictionary())

    def restore(self, state: State) -> FittedSpelling:
        """The corrector from its counts."""
        words = state.get("words")
        pairs = state.get("pairs")
        if not isinstance(words, dict) or not isinstance(pairs, list):
            raise ValueError("the state of a spelling defense has words and pairs")
        return FittedSpelling(self, words, {(left, right): count for left, right, count in pairs}, self._dictionary())

    def _dictionary(self) -> dict[str, int]:
        return english() if self.dictionary else {}
