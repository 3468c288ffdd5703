"""Classifiers and resources made by hand, of which it is known what an attack must do."""

from collections.abc import Sequence
from random import Random

import numpy as np

from tombola.attacks import Attack, Resources, Tools
from tombola.attacks.lockstep import Lane, run
from tombola.attacks.material import Material
from tombola.attacks.neighbours import Neighbours
from tombola.attacks.report import Example
from tombola.attacks.text import WORD
from tombola.attacks.trial import attack_examples, oracles_of


class BagOfWords:
    """A linear classifier: a text's logits are the sum of its words' weights. It remembers what it was asked."""

    def __init__(self, weights: dict[str, Sequence[float] | float], labels: int = 2) -> None:
        self.labels, self.asked = labels, []
        self.weights = {
            word: np.array([0.0, weight] if np.isscalar(weight) else weight)
            for word, weight in weights.items()
        }

    def logits(self, columns: tuple[str, ...]) -> np.ndarray:
        words = [word.lower() for column in columns for word in WORD.findall(column)]
        return sum((self.weights[w] for w in words if w in self.weights), np.zeros(self.labels))

    def __call__(self, texts: list[tuple[str, ...]]) -> np.ndarray:
        self.asked += texts
        powers = np.exp(np.array([self.logits(columns) for columns in texts]))
        return powers / powers.sum(axis=1, keepdims=True)


class SharedWords:
    """A stand-in for the sentence encoder: the share of words that two texts have in common."""

    rows = 0

    def __call__(self, pairs: list[tuple[str, str]]) -> list[float]:
        self.rows += len(pairs)
        return [len(a & b) / len(a | b) for a, b in ((set(x.split()), set(y.split())) for x, y in pairs)]

    def at_least(self, keys: list[tuple[str, str, float]]) -> list[bool]:
        cosines = self([key[:2] for key in keys])
        return [cosine >= least for cosine, (_, _, least) in zip(cosines, keys, strict=True)]


def neighbours(table: dict[str, dict[str, float]]) -> Neighbours:
    """Word → {neighbour: cosine} as a table."""
    words = sorted({*table, *(word for near in table.values() for word in near)})
    width = max(map(len, table.values()))
    nearest = np.zeros((len(words), width), dtype=np.int32)
    cosines = np.full((len(words), width), -1.0, dtype=np.float32)
    for word, near in table.items():
        ordered = sorted(near, key=lambda other: -near[other])
        nearest[words.index(word), : len(near)] = [words.index(other) for other in ordered]
        cosines[words.index(word), : len(near)] = [near[other] for other in ordered]
    return Neighbours(words, nearest, cosines, "toy")


def resources(table: dict[str, dict[str, float]] | None = None, similarity: object = None) -> Resources:
    """Resources with a toy neighbour table and a toy encoder, and the real lexicon."""
    toy = Resources()
    toy.neighbours = neighbours(table or {"good": {"fine": 0.9}})
    toy.similarity = similarity or SharedWords()
    return toy


def material(examples: list[tuple[str | tuple[str, ...], int]], labels: int = 2) -> Material:
    """Examples as the engine takes them."""
    texts = [(text,) if isinstance(text, str) else text for text, _ in examples]
    columns = [f"text{i}" for i in range(len(texts[0]))]
    names = [f"label {i}" for i in range(labels)]
    return Material(texts, [label for _, label in examples], columns, names, columns)


def attack_one(
    attack: Attack,
    model: BagOfWords,
    text: str | tuple[str, ...],
    label: int,
    tools: Resources | None = None,
    *,
    columns: frozenset[int] | None = None,
    budget: int | None = None,
) -> Example:
    """One text attacked by itself."""
    found = material([(text, label)], model.labels)
    own = Tools(tools or resources(), Random(0), columns)
    (example,) = attack_examples(attack, found, [0], oracles_of(model, own.resources), own, budget=budget)
    return example


def alone(steps, oracles) -> Lane:
    """A generator run by itself."""
    (lane,) = run([(0, steps)], oracles)
    return lane
