"""Exact match and F1 of answers as the official SQuAD script counts them. (Rajpurkar et al. 2016, §6.1)"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from tombola.evaluation.scores import MEAN, Score
from tombola.tasks import Answers
from tombola.tasks.metrics import metric

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Normalise a text: lower case, no punctuation, articles or extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def same(predicted: str, answer: str) -> float:
    """Return 1 if both texts are equal once normalised, else 0."""
    return float(normalised(predicted) == normalised(answer))


def word_f1(predicted: str, answer: str) -> float:
    """Return the F1 of the words that two texts share, counted with repetitions."""
    words, expected = normalised(predicted).split(), normalised(answer).split()
    shared = sum((Counter(words) & Counter(expected)).values())
    return 2 * shared / (len(words) + len(expected)) if shared else 0.0


def best(measure: Callable[[str, str], float], predicted: str, answers: Answers) -> float:
    """Return the measure against the closest correct answer; if there is none, only an empty prediction is correct."""
    if not answers.texts:
        return same(predicted, "")
    return max(measure(predicted, answer) for answer in answers.texts)


@metric("exact_match", kinds=("question-answering",))
def exact_match(predicted: Sequence[str], answers: Sequence[Answers]) -> Score:
    """Share of questions whose predicted text is one of the right answers; binomial error."""
    share = float(np.mean([best(same, *pair) for pair in zip(predicted, answers, strict=True)]))
    return Score(share, sqrt(share * (1 - share) / len(answers)), len(answers), "binomial")


@metric("squad_f1", kinds=("question-answering",))
def squad_f1(predicted: Sequence[str], answers: Sequence[Answers]) -> Score:
    """Mean over questions of the F1 of words against the nearest right answer; the error of that mean."""
    values = np.array([best(word_f1, *pair) for pair in zip(predicted, answers, strict=True)])
    return Score(float(values.mean()), float(values.std()) / sqrt(len(values)), len(values), MEAN)
