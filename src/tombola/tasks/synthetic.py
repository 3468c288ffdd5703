"""Add a known bias to any classification task: a word before the text that usually reveals the label."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

from pydantic import Field

from tombola.errors import RecipeError, UnknownName
from tombola.foundations.settings import Settings
from tombola.tasks.split import Split

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "kappa", "lambda", "sigma"]
FORMS = ["anti", "plain"]
"""Variants of a split under a synthetic bias, such as `validation+anti`: all prefixes wrong, or none."""
PREFIX = "prefix"
"""The column of a biased split with each example's prefix, possibly empty."""


class SyntheticBias(Settings):
    """How often examples get a prefix, and how often it matches their label.

    Every split is biased like the training data; `validation+anti` has a wrong prefix on each example and
    `validation+plain` has none. In a pair the prefix precedes the second text.
    """

    share: float = Field(0.9, gt=0, le=1, description="share of the examples to prefix")
    right: float = Field(0.9, ge=0, le=1, description="probability that the prefix matches the label")
    words: list[str] | None = Field(
        None, description="prefix for each label; by default alpha, beta, gamma …"
    )
    seed: int = Field(0, ge=0, description="seed that decides which examples get which prefix")


def biased(split: Split, bias: SyntheticBias, form: str = "") -> Split:
    """Return the split with prefixes, also stored in the column `prefix`. Each depends only on id, label and seed."""
    words = _words(split, bias)
    choose = _chooser(bias, form, len(words))
    prefixes = []
    for identity, label in zip(split.ids, split.labels, strict=True):
        number = choose(f"{bias.seed}\n{split.name}\n{identity}", label)
        prefixes.append("" if number is None else words[number])
    texts = [
        (*others, f"{prefix} {text}" if prefix else text)
        for (*others, text), prefix in zip(split.texts, prefixes, strict=True)
    ]
    return replace(split, texts=texts, columns={**split.columns, PREFIX: prefixes})


def _chooser(bias: SyntheticBias, form: str, labels: int) -> Callable[[str, int], int | None]:
    """Return a function that chooses the label whose prefix an example gets, if any."""

    def wrong(key: str, label: int) -> int:
        return (label + 1 + int(_point(f"other\n{key}") * (labels - 1))) % labels

    def like_training(key: str, label: int) -> int | None:
        if _point(f"share\n{key}") >= bias.share:
            return None
        return label if _point(f"right\n{key}") < bias.right else wrong(key, label)

    match form:
        case "":
            return like_training
        case "anti":
            return wrong
        case "plain":
            return lambda key, label: None
    raise UnknownName("form of a biased split", form, FORMS)


def _words(split: Split, bias: SyntheticBias) -> list[str]:
    labels = split.task.labels
    if labels is None or not split.task.single_label:
        raise RecipeError(
            f"data.synthetic_bias: only works for tasks with one label per text, but {split.task.name} is a "
            f"{split.task.kind} task"
        )
    words = bias.words or WORDS[: len(labels)]
    if len(words) != len(labels) or len(set(words)) != len(words) or not all(map(str.strip, words)):
        raise RecipeError(
            f"data.synthetic_bias.words: takes {len(labels)} different words, one per label of {split.task.name}"
        )
    return words


def _point(key: str) -> float:
    """Return a pseudo-random number in [0, 1) that depends only on the key."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).digest()) / 2**48
