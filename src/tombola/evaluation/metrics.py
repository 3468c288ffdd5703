"""Metrics with standard errors. Classification metrics depend only on the confusion matrix,
so one definition serves the value and its bootstrap, which resamples matrices instead of examples."""

from collections.abc import Callable
from math import isfinite, sqrt
from typing import Any

import numpy as np

from tombola.errors import DataError, ModelError, PluginError
from tombola.evaluation import label_sets
from tombola.evaluation.resampling import RESAMPLES, ratio
from tombola.evaluation.scores import BOOTSTRAP, FISHER, HANLEY, Score
from tombola.tasks import Task
from tombola.tasks.definition import IGNORED
from tombola.tasks.metrics import metric, metrics


def score(task: Task, predictions: np.ndarray | list[Any], labels: Any) -> dict[str, Score]:
    """Compute every metric of the task, the headline first.

    Predictions are logits; for questions the answer texts, for masked tokens their ids, for tagged sentences the
    tags.
    """
    if len(predictions) != len(labels) or len(labels) == 0:
        raise DataError(f"{len(predictions)} predictions for {len(labels)} labels cannot be scored.")
    if not isinstance(predictions, list):
        predictions, labels = np.asarray(predictions), np.asarray(labels)
        broken = int((~np.isfinite(predictions).reshape(len(labels), -1).all(axis=1)).sum())
        if broken:
            raise ModelError(
                f"The model's outputs for {broken} of {len(labels)} examples are NaN or infinite: "
                "train it again, with a lower learning rate or with precision: fp32."
            )
    return {name: _checked(name, metrics[name](predictions, labels)) for name in task.metrics}


def _checked(name: str, value: Any) -> Score:
    """Return what a metric computed, or raise an error if it is no finite score: the metric may be a plugin's."""
    if not isinstance(value, Score):
        raise PluginError(
            f"metric {name}: must return a tombola.evaluation.scores.Score, the value with its standard error, not a "
            f"{type(value).__name__}"
        )
    if not (isfinite(value.value) and isfinite(value.stderr)):
        raise PluginError(
            f"metric {name}: the value ({value.value:g}) and the standard error ({value.stderr:g}) must be finite"
        )
    return value


CLASSES, NUMBERS, CHOICES = ("classification",), ("regression",), "multiple-choice"
"""The kinds of task that metrics of classes and of numbers are for."""


@metric("accuracy", kinds=(*CLASSES, CHOICES))
def accuracy(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Share of examples whose largest logit, or likeliest choice, is the label's; binomial error."""
    if logits.ndim == 3:  # the likelihood and the length of every choice
        logits = logits[..., 0]
    share = float((logits.argmax(axis=1) == labels).mean())
    return Score(share, sqrt(share * (1 - share) / len(labels)), len(labels), "binomial")


@metric("accuracy_norm", kinds=(CHOICES,))
def accuracy_norm(choices: np.ndarray, labels: np.ndarray) -> Score:
    """Share of questions whose likeliest choice per character is the right one; binomial error.

    A choice's log-likelihood is divided by its number of characters, as `acc_norm` of lm-evaluation-harness is.
    """
    share = float(((choices[..., 0] / choices[..., 1]).argmax(axis=1) == labels).mean())
    return Score(share, sqrt(share * (1 - share) / len(labels)), len(labels), "binomial")


def _from_confusion(of: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], Score]:
    """Build a metric from its formula over stacked confusion matrices (…, true, predicted)."""

    def compute(logits: np.ndarray, labels: np.ndarray) -> Score:
        from sklearn.metrics import confusion_matrix

        n, classes = len(labels), logits.shape[1]
        counts = confusion_matrix(labels, logits.argmax(axis=1), labels=range(classes))
        redrawn = np.random.default_rng(0).multinomial(n, counts.ravel() / n, size=RESAMPLES)
        spread = of(redrawn.reshape(RESAMPLES, classes, classes).astype(float)).std(ddof=1)
        return Score(float(of(counts.astype(float))), float(spread), n, f"{BOOTSTRAP} of {RESAMPLES}")

    compute.__doc__ = of.__doc__
    return compute


def _class_f1(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the F1 of each class, its support, and whether it occurs at all."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1)
    support, predicted = confusion.sum(axis=-1), confusion.sum(axis=-2)
    return ratio(2 * hits, support + predicted), support, support + predicted > 0


def _f1(confusion: np.ndarray) -> np.ndarray:
    """F1 of the second label, the positive one in MRPC and QQP."""
    return _class_f1(confusion)[0][..., 1]


def _macro_f1(confusion: np.ndarray) -> np.ndarray:
    """Unweighted mean of the F1 of the classes that occur among labels or predictions."""
    values, _, occurs = _class_f1(confusion)
    mean: np.ndarray = (values * occurs).sum(axis=-1) / occurs.sum(axis=-1)
    return mean


def _weighted_f1(confusion: np.ndarray) -> np.ndarray:
    """Mean of the classes' F1, weighted by their number of examples."""
    values, support, _ = _class_f1(confusion)
    mean: np.ndarray = (values * support).sum(axis=-1) / support.sum(axis=-1)
    return mean


def _mcc(confusion: np.ndarray) -> np.ndarray:
    """Matthews' correlation; 0 where all predictions or all labels are of one class."""
    true, predicted = confusion.sum(axis=-1), confusion.sum(axis=-2)
    n = true.sum(axis=-1)
    hits = np.trace(confusion, axis1=-2, axis2=-1)
    covariance = hits * n - (true * predicted).sum(axis=-1)
    spread = np.sqrt((n**2 - (true**2).sum(axis=-1)) * (n**2 - (predicted**2).sum(axis=-1)))
    return ratio(covariance, spread)


_macro_f1_of_classes = _from_confusion(_macro_f1)


@metric("macro_f1", kinds=(*CLASSES, "multi-label"))
def macro_f1(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Unweighted mean of the F1 of the classes or labels that occur in the data or among the predictions."""
    return (_macro_f1_of_classes if labels.ndim == 1 else label_sets.macro_f1)(logits, labels)


metric("f1", kinds=CLASSES, labels=2)(_from_confusion(_f1))
metric("weighted_f1", kinds=CLASSES)(_from_confusion(_weighted_f1))
metric("mcc", kinds=CLASSES, share=False)(_from_confusion(_mcc))


@metric("auc", kinds=CLASSES, labels=2)
def auc(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Area under the ROC curve: how often an example of the second label gets higher odds than one of the first.

    Unlike the accuracy, it does not depend on where the odds are cut. The error is that of Hanley and McNeil (1982).
    """
    from scipy.stats import rankdata

    positive = int((labels == 1).sum())
    negative = len(labels) - positive
    if not positive or not negative:
        raise DataError("auc needs examples of both labels; the data has only one of them.")
    ranks = rankdata(logits[:, 1] - logits[:, 0])  # equal odds count half
    area = float((ranks[labels == 1].sum() - positive * (positive + 1) / 2) / (positive * negative))
    second = (positive - 1) * (area / (2 - area) - area**2)
    first = (negative - 1) * (2 * area**2 / (1 + area) - area**2)
    variance = (area * (1 - area) + second + first) / (positive * negative)
    return Score(area, sqrt(max(variance, 0.0)), len(labels), HANLEY)


@metric("pearson", kinds=NUMBERS, share=False)
def pearson(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Linear correlation (0 for constant predictions); the error of Fisher's z carried back to r."""
    from scipy.stats import pearsonr

    return _correlation(logits, labels, pearsonr, lambda _: 1.0)


@metric("spearman", kinds=NUMBERS, share=False)
def spearman(logits: np.ndarray, labels: np.ndarray) -> Score:
    """Rank correlation (0 for constant predictions); Fisher's z with Bonett and Wright's (2000) variance."""
    from scipy.stats import spearmanr

    return _correlation(logits, labels, spearmanr, lambda rho: 1 + rho * rho / 2)


def _correlation(
    logits: np.ndarray,
    labels: np.ndarray,
    measure: Callable[..., tuple[float, float]],
    variance: Callable[[float], float],
) -> Score:
    n = len(labels)
    if n < 4:
        raise DataError(f"A correlation and its standard error need at least 4 examples; there are {n}.")
    predictions = logits.reshape(n)
    constant = np.ptp(predictions) == 0 or np.ptp(labels) == 0
    r = 0.0 if constant else float(measure(predictions, labels)[0])
    return Score(r, (1 - r * r) * sqrt(variance(r) / (n - 3)), n, FISHER)


@metric("masked_accuracy", kinds=("masked-lm",))
def masked_accuracy(predicted: np.ndarray, labels: np.ndarray) -> Score:
    """Share of the masked tokens that are found; binomial error. Labels of −100 do not count.

    (BERT-Tickets' released code averages over batches, weighted by all their tokens, so that the mean depends on the
    batches. Here every masked token counts once.)
    """
    scored = labels != IGNORED
    n = int(scored.sum())
    share = float((predicted[scored] == labels[scored]).mean())
    return Score(share, sqrt(share * (1 - share) / n), n, "binomial")
