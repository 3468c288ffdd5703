"""The features of the lexical-overlap bias: how much of a hypothesis occurs in its premise. (Clark et al. 2019)

`published` are the seven features of the released code: the two lengths enter as log(max(premise − hypothesis, 1)),
and a one-word hypothesis has a second-least similarity of 0. `ours` are six: the log ratio of the lengths, which also
shows how much longer a hypothesis is, and no second-least similarity. In both, word vectors are a model's input
embeddings where the release uses fastText, and punctuation is not a word.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from transformers import AutoModel

from tombola.bias.words import words_of
from tombola.foundations.quiet import quiet
from tombola.models.loading import load_tokenizer
from tombola.models.safety import open_pretrained
from tombola.tasks.frame import token_ids

Features = Literal["ours", "published"]
_SHARED = ["all words", "contiguous", "share of words", "mean similarity", "least similarity"]
FEATURES: dict[Features, list[str]] = {
    "ours": [*_SHARED, "log length ratio"],
    "published": [*_SHARED, "second-least similarity", "log length difference"],
}


def overlap_features(
    pairs: Sequence[tuple[str, ...]], vectors: Path, features: Features = "ours"
) -> np.ndarray:
    """Return one row of `FEATURES[features]` per (premise, hypothesis). A text without words overlaps with nothing."""
    split = [(words_of(premise), words_of(hypothesis)) for premise, hypothesis in pairs]
    vocabulary = {
        word: row for row, word in enumerate(sorted({w for pair in split for side in pair for w in side}))
    }
    table = word_vectors(list(vocabulary), vectors) if vocabulary else np.empty((0, 0))
    rows = np.zeros((len(split), len(FEATURES[features])))
    published = features == "published"
    for row, (premise, hypothesis) in zip(rows, split, strict=True):
        longer = max(len(premise) - len(hypothesis), 1)
        row[-1] = np.log(longer if published else (1 + len(premise)) / (1 + len(hypothesis)))
        if not premise or not hypothesis:
            continue
        known = set(premise)
        inside = np.array([word in known for word in hypothesis])
        alike = table[[vocabulary[w] for w in hypothesis]] @ table[[vocabulary[w] for w in premise]].T
        nearest = alike.max(axis=1)
        row[:5] = inside.all(), contiguous(hypothesis, premise), inside.mean(), nearest.mean(), nearest.min()
        if published and len(nearest) > 1:
            row[5] = np.partition(nearest, 1)[1]
    return rows


def contiguous(part: list[str], whole: list[str]) -> bool:
    """Return whether `part` occurs in `whole` as a contiguous run."""
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def word_vectors(words: list[str], folder: Path) -> np.ndarray:
    """Return unit vectors of words: the mean of a model's input embeddings over each word's tokens."""
    tokenizer = load_tokenizer(folder)
    with quiet(), torch.no_grad():
        embeddings = open_pretrained(AutoModel, folder).get_input_embeddings().weight
        tokens = token_ids(tokenizer, words)
        starts = torch.tensor([0, *np.cumsum([len(ids) for ids in tokens])[:-1]])
        ids = torch.from_numpy(np.concatenate(tokens)).long()
        means = torch.nn.functional.embedding_bag(ids, embeddings, starts, mode="mean")
        return torch.nn.functional.normalize(means.float(), dim=1).numpy()
