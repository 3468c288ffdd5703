"""Metrics of predicted label sets. A label is predicted if its logit is above 0; errors are bootstrapped."""

from math import sqrt

import numpy as np

from tombola.evaluation.resampling import ratio, score_of_sums
from tombola.evaluation.scores import Score
from tombola.tasks.metrics import metric


@metric("micro_f1", kinds=("multi-label",))
def micro_f1(logits: np.ndarray, labels: np.ndarray) -> Score:
    """F1 over all decisions on labels of all examples together."""
    counts = _counts(logits, labels).sum(axis=2)
    return score_of_sums(counts, lambda sums: ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2]))


def macro_f1(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Unweighted mean of the F1 of the labels that occur in the data or among the predictions."""
    counts = _counts(logits, labels)

    def mean(sums: np.ndarray) -> np.ndarray:
        hits, predicted, true = np.split(sums, 3, axis=-1)
        occurs = predicted + true > 0
        return ratio(ratio(2 * hits, predicted + true).sum(axis=-1), occurs.sum(axis=-1))

    return score_of_sums(counts.reshape(len(labels), -1), mean)


@metric("subset_accuracy", kinds=("multi-label",))
def subset_accuracy(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Share of examples whose labels are all found and no others; binomial error."""
    share = float(((logits > 0) == labels.astype(bool)).all(axis=1).mean())
    return Score(share, sqrt(share * (1 - share) / len(labels)), len(labels), "binomial")


def _counts(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return whether each label of each example is correctly predicted, predicted, true: (examples, 3, labels)."""
    predicted, true = logits > 0, labels.astype(bool)
    return np.stack([predicted & true, predicted, true], axis=1).astype(np.int64)
