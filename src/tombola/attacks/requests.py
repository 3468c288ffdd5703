"""The requests of an attack: model scores, similarities of two texts, a masked LM's proposals.

An attack is a generator that yields a `Request` and is sent the answers. It uses the functions of this module:
`scores = yield from ask(texts)`.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tombola.attacks.text import Text

T = TypeVar("T")

MODEL = "model"
SIMILARITY = "similarity"
SIMILAR = "similar enough"
MASKED_LM = "masked LM"


class Request(NamedTuple):
    """Keys for one oracle to answer. `until`: answers stop after the first that departs from this label."""

    oracle: str
    keys: Sequence[Hashable]
    until: int | None = None


Steps = Generator[Request, list[Any], T]
"""A generator that yields requests, receives their answers in order, and returns a T."""

Oracle = Callable[[list[Any]], Sequence[Any] | np.ndarray]
"""Answers distinct keys in order. An answer may depend only on its key."""

Oracles = Mapping[str, Oracle]


def ask(texts: Sequence[Text]) -> Steps[np.ndarray]:
    """Request the model's probabilities for each text: (texts, labels)."""
    answers = yield Request(MODEL, [text.columns for text in texts])
    return np.array(answers)


def ask_until(texts: Sequence[Text], label: int) -> Steps[np.ndarray]:
    """Request probabilities text by text until one is not labelled `label`; texts after it are not counted."""
    answers = yield Request(MODEL, [text.columns for text in texts], until=label)
    return np.array(answers)


def similarity(pairs: Sequence[tuple[str, str]]) -> Steps[list[float]]:
    """Request the sentence encoder's cosine for each pair of texts."""
    answers = yield Request(SIMILARITY, list(pairs))
    return answers


def similar(pairs: Sequence[tuple[str, str]], least: float) -> Steps[list[bool]]:
    """Ask whether the sentence encoder's cosine is at least `least`, for each pair of texts."""
    answers = yield Request(SIMILAR, [(first, second, least) for first, second in pairs])
    return answers


def propose(text: str, spans: tuple[tuple[int, int], ...], k: int) -> Steps[list[list[str]]]:
    """Request the masked LM's `k` best words for each (start, end) of the text."""
    answers = yield Request(MASKED_LM, [(text, spans, k)])
    (words,) = answers
    return list(words)
