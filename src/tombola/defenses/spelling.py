"""Spelling correction: its settings, and how it is fitted to the training texts."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from tombola.defenses.base import Defense, State, defenses
from tombola.defenses.corrector import FittedSpelling, tokens
from tombola.defenses.language import Pairs
from tombola.errors import TombolaError
from tombola.words.english import english

USUAL = 0.8  # fraction of a word's occurrences that must share a spelling for it to count as the usual one


@defenses.register
class Spelling(Defense):
    """Corrects misspelt words to words of the training texts and of an English dictionary."""

    kind: Literal["spelling"] = "spelling"
    dictionary: Literal["english"] | None = Field(
        "english", description="known words besides those of the training texts; null: none"
    )
    min_count: int = Field(
        2,
        ge=1,
        description="occurrences in the training texts that exempt a word from correction; rarer words seldom change",
    )
    context: bool = Field(True, description="also weigh candidates by the adjacent words")
    keep: tuple[str, ...] = Field((), description="more words that are never corrected")
    max_pairs: int = Field(
        200_000, ge=0, description="number of adjacent word pairs to store, the most frequent ones"
    )

    @model_validator(mode="after")
    def _pairs_for_context(self) -> Self:
        if not self.context and self.max_pairs != type(self).model_fields["max_pairs"].default:
            raise ValueError("max_pairs: only works with context: true; leave it out")
        return self

    @property
    def material(self) -> str | None:
        """The fingerprint of the dictionary."""
        return english().fingerprint if self.dictionary else None

    def fit(self, texts: Iterable[str]) -> FittedSpelling:
        """Count words and pairs of words."""
        surfaces: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for text in texts:
            found = [token.text.replace("’", "'") for token in tokens(text)]
            surfaces.update(found)
            if self.context:
                pairs.update(pairwise([word.lower() for word in found]))
        words: Counter[str] = Counter()
        for surface, count in surfaces.items():
            words[surface.lower()] += count
        forms = {
            surface.lower(): surface
            for surface, count in surfaces.items()
            if not surface.islower() and count > USUAL * words[surface.lower()]
        }
        most = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[: self.max_pairs]
        return self._fitted(dict(sorted(words.items())), dict(most), dict(sorted(forms.items())))

    def restore(self, state: State) -> FittedSpelling:
        """Restore the corrector from its counts."""
        words, pairs, forms = state.get("words"), state.get("pairs"), state.get("forms")
        if not isinstance(words, dict) or not isinstance(pairs, list) or not isinstance(forms, dict):
            raise ValueError("the state of a spelling defense has words, pairs and forms")
        fitted = self._fitted(words, {(left, right): count for left, right, count in pairs}, forms)
        if state.get("dictionary") != fitted.dictionary_fingerprint:
            raise TombolaError(
                "A spelling defense was fitted with another version of the English dictionary: install the version "
                "of symspellpy that was used then, or fit the defense again."
            )
        return fitted

    def _fitted(self, words: dict[str, int], pairs: Pairs, forms: dict[str, str]) -> FittedSpelling:
        return FittedSpelling(self, words, pairs, forms, english() if self.dictionary else None)
