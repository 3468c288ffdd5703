"""Bias models of scikit-learn: what each looks at, how it is fitted, and its log-probabilities of the labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tombola.bias.overlap import overlap_features, words_of
from tombola.bias.settings import LexicalOverlap, OneSide, Shallow, SyntheticPrefix
from tombola.errors import DataError, RecipeError, UnknownName
from tombola.models.finding import find_model
from tombola.tasks import Split, Task
from tombola.tasks.synthetic import PREFIX

Fitted = LexicalOverlap | OneSide | Shallow | SyntheticPrefix
MOST_SIBLINGS = 20  # a text that more examples share is a turn of phrase, and would tie all of them together
FLOOR = np.log(1e-6)  # a label that a weak model rules out must not have an infinite loss


@dataclass(frozen=True)
class Fit:
    """A bias model fitted to a training split."""

    settings: Fitted
    task: Task
    vectors: Path | None
    train: np.ndarray
    """Log-probabilities of the training examples, (examples, labels), out of fold unless the settings say otherwise."""
    model: Pipeline
    """Fitted to all training examples, for every other split."""

    def log_probs(self, split: Split) -> np.ndarray:
        """Log-probabilities of the training task's labels on another split."""
        return _log_probs(self.settings, self.task, self.model, _inputs(self.settings, split, self.vectors))


def fit(settings: Fitted, split: Split, seed: int, vectors: Path | None = None) -> Fit:
    """Fit the bias model; `vectors` is the folder of the model that lexical overlap takes its word vectors from."""
    if isinstance(settings, SyntheticPrefix) and PREFIX not in split.columns:
        raise RecipeError("bias: synthetic models the bias of data.synthetic_bias, which is not set")
    task, inputs = split.task, _inputs(settings, split, vectors)
    targets = _targets(settings, split)
    whole = _fitted(settings, inputs, targets, np.arange(len(split)), seed)
    if settings.predictions == "in_sample":
        return Fit(settings, task, vectors, _log_probs(settings, task, whole, inputs), whole)
    train = np.empty((len(split), task.num_labels), dtype=np.float32)
    folds = fold_numbers(split, settings.folds, seed)
    for fold in np.unique(folds):
        held_out = np.flatnonzero(folds == fold)
        model = _fitted(settings, inputs, targets, np.flatnonzero(folds != fold), seed)
        train[held_out] = _log_probs(settings, task, model, _take(inputs, held_out))
    return Fit(settings, task, vectors, train, whole)


def fold_numbers(split: Split, folds: int, seed: int) -> np.ndarray:
    """A fold for each example, at random, but the same for all that share a text, directly or through others.

    MNLI has each premise under all three labels and FEVER a claim for each of its pieces of evidence: a model that
    has seen the siblings of an example knows too much of it, or knows it the wrong way round.
    """
    sharing: dict[tuple[int, str], list[int]] = {}
    for example, texts in enumerate(split.texts):
        for text in enumerate(texts):
            sharing.setdefault(text, []).append(example)
    families = [members for members in sharing.values() if 1 < len(members) <= MOST_SIBLINGS]
    links = [(members[0], other) for members in families for other in members[1:]]
    ends = np.array(links, dtype=np.int64).reshape(-1, 2).T
    graph = coo_matrix((np.ones(len(links)), ends), shape=(len(split), len(split)))
    count, family = connected_components(graph, directed=False)
    return np.random.default_rng(seed).integers(folds, size=count)[family]


def _inputs(settings: Fitted, split: Split, vectors: Path | None) -> Any:
    """What the model looks at in each example: a row of numbers, or words."""
    task = split.task
    match settings:
        case LexicalOverlap():
            if len(task.text) != 2:
                raise RecipeError(
                    f"bias: lexical_overlap is for pairs of texts, and {task.name} has one text"
                )
            folder = vectors or find_model(settings.vectors).folder
            return overlap_features(split.texts, folder, settings.features)
        case OneSide(ngrams=ngrams, column=column):
            if column is not None and column not in task.text:
                raise RecipeError(
                    str(UnknownName("text of " + task.name, column, task.text, where="bias.column"))
                )
            side = task.text.index(column) if column is not None else -1
            return [_ngrams(texts[side], ngrams) for texts in split.texts]
        case Shallow(ngrams=ngrams):
            return [
                [f"{side}:{words}" for side, text in enumerate(texts) for words in _ngrams(text, ngrams)]
                for texts in split.texts
            ]
        case SyntheticPrefix():
            return [[prefix] for prefix in split.columns.get(PREFIX, [""] * len(split))]


def _targets(settings: Fitted, split: Split) -> np.ndarray:
    """The labels; for lexical overlap, whether it is the one that overlap speaks for."""
    targets = np.asarray(split.labels)
    if isinstance(settings, LexicalOverlap):
        return (targets == overlap_label(settings, split.task)).astype(np.int64)
    return targets


def overlap_label(settings: LexicalOverlap, task: Task) -> int:
    """The number of the label that overlap speaks for."""
    labels = task.labels or []
    label = settings.label or ("entailment" if "entailment" in labels else labels[0])
    if label not in labels:
        raise RecipeError(str(UnknownName(f"label of {task.name}", label, labels, where="bias.label")))
    return labels.index(label)


def _fitted(settings: Fitted, inputs: Any, targets: np.ndarray, rows: np.ndarray, seed: int) -> Pipeline:
    if isinstance(settings, Shallow) and settings.examples is not None:
        rows = np.random.default_rng(seed).permutation(rows)[: settings.examples]
    if len(np.unique(targets[rows])) < 2:
        raise DataError(
            f"A bias model cannot be fitted to {len(rows)} training examples without two different labels: take more "
            "data, or set bias.predictions: in_sample."
        )
    overlap = isinstance(settings, LexicalOverlap)
    weights = "balanced" if isinstance(settings, LexicalOverlap) and settings.balanced else None
    words = TfidfVectorizer(analyzer=list, sublinear_tf=True)
    linear = LogisticRegression(C=settings.strength, class_weight=weights, max_iter=1000)
    pipeline = make_pipeline(StandardScaler() if overlap else words, linear)
    return pipeline.fit(_take(inputs, rows), targets[rows])


def _log_probs(settings: Fitted, task: Task, model: Pipeline, inputs: Any) -> np.ndarray:
    """The model's view as float32 log-probabilities of all labels, each at least the floor.

    Lexical overlap tells one label from the rest, whose probability the other labels share evenly.
    """
    found = model.predict_log_proba(inputs)
    full = np.full((len(found), task.num_labels), FLOOR)
    if isinstance(settings, LexicalOverlap):
        full[:] = (found[:, 0] - np.log(task.num_labels - 1))[:, None]
        full[:, overlap_label(settings, task)] = found[:, 1]
    else:
        full[:, model.classes_] = found
    full = np.maximum(full, FLOOR)
    return (full - logsumexp(full, axis=1, keepdims=True)).astype(np.float32)


def _ngrams(text: str, longest: int) -> list[str]:
    words = words_of(text)
    return [" ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words) - n + 1)]


def _take(inputs: Any, rows: Sequence[int] | np.ndarray) -> Any:
    return inputs[rows] if isinstance(inputs, np.ndarray) else [inputs[row] for row in rows]
