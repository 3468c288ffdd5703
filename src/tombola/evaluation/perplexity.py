"""Perplexities: the exponential of the mean negative log-likelihood per token, per word and per byte.

Standard errors are over documents. The mean is a ratio of two sums over documents, L = Σ nll / Σ n; its error follows
from the residuals nll − L·n, and that of exp L from the delta method: exp L times the error of L.
"""

from math import exp, sqrt

import numpy as np

from tombola.errors import DataError
from tombola.evaluation.scores import DELTA, LARGEST_LOG, Score
from tombola.tasks.metrics import metric

KINDS = ("causal-lm",)
TOKENS, WORDS, BYTES = range(3)
"""The columns of the documents' counts."""


@metric("perplexity", kinds=KINDS, share=False, lower_is_better=True)
def perplexity(losses: np.ndarray, counts: np.ndarray) -> Score:
    """The exponential of the mean loss per token; its error over documents."""
    return _perplexity(losses, counts[:, TOKENS])


@metric("word_perplexity", kinds=KINDS, share=False, lower_is_better=True)
def word_perplexity(losses: np.ndarray, counts: np.ndarray) -> Score:
    """The perplexity per word of the text, whatever the tokenizer; its error over documents."""
    return _perplexity(losses, counts[:, WORDS])


@metric("byte_perplexity", kinds=KINDS, share=False, lower_is_better=True)
def byte_perplexity(losses: np.ndarray, counts: np.ndarray) -> Score:
    """The perplexity per byte of the text in UTF-8, whatever the tokenizer; its error over documents."""
    return _perplexity(losses, counts[:, BYTES])


def _perplexity(losses: np.ndarray, counts: np.ndarray) -> Score:
    """Return the exponential of Σ losses / Σ counts."""
    n = len(losses)
    if n < 2:
        raise DataError(
            "A perplexity and its standard error need at least two documents, or one that fills two blocks."
        )
    mean = float(losses.sum() / counts.sum())
    residuals = losses - mean * counts
    error = sqrt(n / (n - 1) * float((residuals**2).sum())) / float(counts.sum())
    value = exp(min(mean, LARGEST_LOG))
    return Score(value, min(value * error, exp(LARGEST_LOG)), n, DELTA)
