"""Bias models based on scikit-learn: their fitting, and their log-probabilities of the labels."""

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

from tombola.bias.settings import FittedBias
from tombola.errors import DataError, RecipeError
from tombola.tasks import Split, Task

MOST_SIBLINGS = 20  # a text shared by more examples is a common phrase, and would tie all of them together
FLOOR = np.log(1e-6)  # a label that a weak model rules out must not cause an infinite loss


@dataclass(frozen=True)
class Fit:
    """A bias model fitted to a training split."""

    settings: FittedBias
    task: Task
    vectors: Path | None
    train: np.ndarray
    """Log-probabilities of the training examples, (examples, labels), out-of-fold by default."""
    model: Pipeline
    """The model fitted to all training examples, for other splits."""

    def log_probs(self, split: Split) -> np.ndarray:
        """Return log-probabilities of the training task's labels on another split."""
        return _log_probs(self.settings, self.task, self.model, self.settings.features(split, self.vectors))


def fit(settings: FittedBias, split: Split, seed: int, vectors: Path | None = None) -> Fit:
    """Fit a linear bias model; `vectors` is the folder of the pre-trained model that it reads, if any."""
    if not split.task.single_label:
        raise RecipeError(
            f"bias: only works for tasks with one label per text, but {split.task.name} is a {split.task.kind} task"
        )
    task, inputs = split.task, settings.features(split, vectors)
    targets = settings.targets(split)
    on_all = _fitted(settings, inputs, targets, np.arange(len(split)), seed)
    if settings.predictions == "in_sample":
        return Fit(settings, task, vectors, _log_probs(settings, task, on_all, inputs), on_all)
    train = np.empty((len(split), task.num_labels), dtype=np.float32)
    folds = fold_numbers(split, settings.folds, seed)
    for fold in np.unique(folds):
        held_out = np.flatnonzero(folds == fold)
        model = _fitted(settings, inputs, targets, np.flatnonzero(folds != fold), seed)
        train[held_out] = _log_probs(settings, task, model, _take(inputs, held_out))
    return Fit(settings, task, vectors, train, on_all)


def fold_numbers(split: Split, folds: int, seed: int) -> np.ndarray:
    """Return a random fold for each example, the same for all that share a text, directly or transitively.

    MNLI has each premise under all three labels, and FEVER a claim for each piece of its evidence: a model that has
    seen the siblings of an example knows too much about it, or the opposite of its label.
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
    folds_of: np.ndarray = np.random.default_rng(seed).integers(folds, size=count)[family]
    return folds_of


def _fitted(settings: FittedBias, inputs: Any, targets: np.ndarray, rows: np.ndarray, seed: int) -> Pipeline:
    rows = settings.rows(rows, seed)
    if len(np.unique(targets[rows])) < 2:
        raise DataError(
            f"A bias model needs at least two different labels, but the {len(rows)} training examples have fewer: "
            "use more data, or set bias.predictions: in_sample."
        )
    numbers = isinstance(inputs, np.ndarray)
    if not numbers and not any(inputs[row] for row in rows):
        raise DataError(
            f"bias: {settings.method} reads words, but the texts of the {len(rows)} training examples have none: "
            "use another bias model or column."
        )
    scaled = StandardScaler() if numbers else TfidfVectorizer(analyzer=list, sublinear_tf=True)
    linear = LogisticRegression(C=settings.strength, class_weight=settings.class_weight, max_iter=1000)
    pipeline = make_pipeline(scaled, linear)
    return pipeline.fit(_take(inputs, rows), targets[rows])


def _log_probs(settings: FittedBias, task: Task, model: Pipeline, inputs: Any) -> np.ndarray:
    """Return the model's float32 log-probabilities of all labels, each at least the floor."""
    predicted = model.predict_log_proba(inputs)
    full = np.full((len(predicted), task.num_labels), FLOOR)
    settings.spread(predicted, model.classes_.tolist(), full, task)
    full = np.maximum(full, FLOOR)
    normalised: np.ndarray = (full - logsumexp(full, axis=1, keepdims=True)).astype(np.float32)
    return normalised


def _take(inputs: Any, rows: Sequence[int] | np.ndarray) -> Any:
    return inputs[rows] if isinstance(inputs, np.ndarray) else [inputs[row] for row in rows]
