"""Metrics of tagged sentences, as CoNLL's script and seqeval count them; errors are bootstrapped over sentences.

An entity is found if its type, first word and last word are correct. (Tjong Kim Sang and De Meulder 2003)
"""

from collections.abc import Sequence

import numpy as np

from tombola.evaluation.resampling import ratio, score_of_sums
from tombola.evaluation.scores import Score
from tombola.tasks.metrics import metric
from tombola.tasks.tags import entities

Sentences = Sequence[Sequence[str]]


@metric("entity_f1", kinds=("token-classification",))
def entity_f1(predicted: Sentences, true: Sentences) -> Score:
    """Harmonic mean of precision and recall over the entities of all sentences."""
    return score_of_sums(
        _counts(predicted, true), lambda sums: ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2])
    )


@metric("entity_precision", kinds=("token-classification",))
def entity_precision(predicted: Sentences, true: Sentences) -> Score:
    """Share of the predicted entities that are correct; 0 if there are none."""
    return score_of_sums(_counts(predicted, true), lambda sums: ratio(sums[..., 0], sums[..., 1]))


@metric("entity_recall", kinds=("token-classification",))
def entity_recall(predicted: Sentences, true: Sentences) -> Score:
    """Share of the true entities that are found; 0 if there are none."""
    return score_of_sums(_counts(predicted, true), lambda sums: ratio(sums[..., 0], sums[..., 2]))


@metric("token_accuracy", kinds=("token-classification",))
def token_accuracy(predicted: Sentences, true: Sentences) -> Score:
    """Share of the words with the correct tag."""
    rows = [
        (sum(tag == other for tag, other in zip(tags, true_tags, strict=True)), len(true_tags))
        for tags, true_tags in zip(predicted, true, strict=True)
    ]
    return score_of_sums(np.array(rows), lambda sums: ratio(sums[..., 0], sums[..., 1]))


def _counts(predicted: Sentences, true: Sentences) -> np.ndarray:
    """Return the numbers of correct, predicted and true entities of each sentence."""
    rows = []
    for tags, true_tags in zip(predicted, true, strict=True):
        guesses, truths = set(entities(tags)), set(entities(true_tags))
        rows.append((len(guesses & truths), len(guesses), len(truths)))
    return np.array(rows)
