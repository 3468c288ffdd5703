"""Constraints on changed texts. Each keeps the candidates that satisfy it; every attack lists its own."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi
from typing import Literal, Protocol

from tombola.attacks.requests import Steps, similar
from tombola.attacks.text import Text
from tombola.words.lexicon import Lexicon


class Constraint(Protocol):
    """Keeps some of the candidates, each of which differs from `current` in its last edited word."""

    def keep(self, current: Text, candidates: list[Text]) -> Steps[list[Text]]:
        """Return the candidates that satisfy the constraint, in order."""
        ...


def satisfying(constraints: Sequence[Constraint], current: Text, candidates: list[Text]) -> Steps[list[Text]]:
    """Return the candidates that satisfy every constraint, applied in turn."""
    for constraint in constraints:
        candidates = yield from constraint.keep(current, candidates)
    return candidates


class ConstraintCheck(ABC):
    """A constraint that checks one candidate at a time, without a request."""

    def keep(self, current: Text, candidates: list[Text]) -> Steps[list[Text]]:
        """Return the allowed candidates."""
        yield from ()
        return [candidate for candidate in candidates if self.allows(candidate)]

    @abstractmethod
    def allows(self, candidate: Text) -> bool:
        """Return whether the candidate, compared with its origin, satisfies the constraint."""


@dataclass(frozen=True)
class MaxChanged(ConstraintCheck):
    """At most this fraction of the words is changed; one word may always change."""

    share: float

    def allows(self, candidate: Text) -> bool:
        """Count the changed words."""
        return len(candidate.changes) <= max(1, int(self.share * len(candidate.words)))


@dataclass(frozen=True)
class PartOfSpeech(ConstraintCheck):
    """The new word can have the same part of speech as the original; nouns and verbs count as one."""

    lexicon: Lexicon
    verbs_as_nouns: bool = True

    def allows(self, candidate: Text) -> bool:
        """Compare the last edited word with the original."""
        assert candidate.last is not None
        old, new = candidate.origin.words[candidate.last], candidate.words[candidate.last]
        return self.lexicon.same_part_of_speech(old, new, verbs_as_nouns=self.verbs_as_nouns)


@dataclass(frozen=True)
class MaxEdits(ConstraintCheck):
    """At most this many letters are inserted, deleted or substituted, over all changed words."""

    most: int

    def allows(self, candidate: Text) -> bool:
        """Add up the changed words' edit distances."""
        old = candidate.origin.words
        return sum(levenshtein(old[i], new) for i, new in candidate.changes.items()) <= self.most


@dataclass(frozen=True)
class SentenceSimilarity:
    """The sentence encoder finds the changed text similar enough to the original, or to the previous step.

    `window`: compare only this many words around the change. `spare_short`: texts shorter than the window pass.
    `metric`: the cosine itself, or 1 − angle / π.
    """

    at_least: float
    metric: Literal["cosine", "angular"] = "cosine"
    window: int | None = None
    spare_short: bool = False
    to: Literal["origin", "current"] = "origin"

    def keep(self, current: Text, candidates: list[Text]) -> Steps[list[Text]]:
        """Send all candidates to the encoder at once."""
        reference = current.origin if self.to == "origin" else current
        judged = [candidate for candidate in candidates if not self._is_exempt(candidate)]
        pairs = [self._pair(reference, candidate) for candidate in judged]
        near = yield from similar(pairs, self.least_cosine)
        too_far = {id(candidate) for candidate, enough in zip(judged, near, strict=True) if not enough}
        return [candidate for candidate in candidates if id(candidate) not in too_far]

    def _is_exempt(self, candidate: Text) -> bool:
        assert candidate.last is not None
        short = self.window is not None and candidate.column_length(candidate.last) < self.window
        return self.spare_short and short

    def _pair(self, reference: Text, candidate: Text) -> tuple[str, str]:
        assert candidate.last is not None
        return reference.window(candidate.last, self.window), candidate.window(candidate.last, self.window)

    @property
    def least_cosine(self) -> float:
        """The smallest cosine that is similar enough."""
        return self.at_least if self.metric == "cosine" else cos(pi * (1 - self.at_least))


def levenshtein(a: str, b: str) -> int:
    """Return the edit distance: the letters to insert, delete or substitute to turn `a` into `b`."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != other))
    return row[-1]
