"""What an attack asks while it runs: scores of the model, similarities of two texts, a masked LM's proposals.

An attack is a generator that yields a `Request` and is sent the answers. The functions here are the sentences
it speaks in: `scores = yield from ask(texts)`.
"""

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tombola.attacks.text import Text

T = TypeVar("T")

MODEL = "model"
SIMILARITY = "similarity"
MASKED_LM = "masked LM"


class Request(NamedTuple):
    """Keys to be answered by one oracle. `until`: no answers are given after the first that leaves this label."""

    oracle: str
    keys: Sequence[Hashable]
    until: int | None = None


Steps = Generator[Request, list[Any], T]
"""A generator that yields requests, receives their answers in order, and returns a T."""

Oracle = Callable[[list[Any]], Sequence[Any] | np.ndarray]
"""Answers to distinct keys, in their order. An answer may depend on its key alone."""

Oracles = Mapping[str, Oracle]


def ask(texts: Sequence[Text]) -> Steps[np.ndarray]:
    """The model's probabilities for each text: (texts, labels)."""
    answers = yield Request(MODEL, [text.columns for text in texts])
    return np.array(answers)


def ask_until(texts: Sequence[Text], label: int) -> Steps[np.ndarray]:
    """The probabilities of text after text until one is not given `label`: its row is the last, none after is paid."""
    answers = yield Request(MODEL, [text.columns for text in texts], until=label)
    return np.array(answers)


def similarity(pairs: Sequence[tuple[str, str]]) -> Steps[list[float]]:
    """The sentence encoder's cosine for each pair of texts."""
    answers = yield Request(SIMILARITY, list(pairs))
    return answers


def propose(text: str, spans: tuple[tuple[int, int], ...], k: int) -> Steps[list[list[str]]]:
    """The masked LM's `k` best words for each (start, end) of the text."""
    answers = yield Request(MASKED_LM, [(text, spans, k)])
    (words,) = answers
    return list(words)
