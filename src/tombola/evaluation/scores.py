"""A score: a metric's value and its uncertainty."""

from dataclasses import asdict, dataclass
from math import atanh, exp, log, tanh
from typing import Any, Self

from tombola.evaluation.intervals import normal_quantile, wilson

DELTA = "delta method"
FISHER = "Fisher z"
HANLEY = "Hanley-McNeil"
BOOTSTRAP = "bootstrap"
MEAN = "of the mean"
LARGEST_LOG = 700.0
"""Larger exponents overflow."""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, its standard error, the number of examples, and the method of the error.

    `DELTA` is the method for the exponential of a mean (a perplexity), whose error is about normal on the log scale;
    `FISHER` that for a correlation, whose error is about normal on the scale of Fisher's z.
    """

    value: float
    stderr: float
    n: int
    method: str

    @classmethod
    def of_share(cls, share: float, n: int) -> Self:
        """Return the score of a proportion of `n` examples."""
        return cls(share, (share * (1 - share) / n) ** 0.5, n, "binomial")

    def as_dict(self) -> dict[str, Any]:
        """Return the score as a JSON-ready dict."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Restore a score from its dict."""
        return cls(**content)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval: Wilson's for a proportion, Fisher's for a correlation.

        Otherwise it is normal, on the log scale for a perplexity; that of an area or a bootstrapped score, such as F1,
        ends at −1 and 1. Examples that are all right have no spread: the lower end is Wilson's.
        """
        if self.method == "binomial":
            return wilson(round(self.value * self.n), self.n, level)
        half = normal_quantile((1 + level) / 2) * self.stderr
        if self.method == DELTA:
            centre, half = log(self.value), half / self.value
            return exp(max(centre - half, -LARGEST_LOG)), exp(min(centre + half, LARGEST_LOG))
        if self.method == FISHER and abs(self.value) < 1:
            centre, half = atanh(self.value), half / (1 - self.value**2)
            return tanh(centre - half), tanh(centre + half)
        low, high = self.value - half, self.value + half
        if self.method.startswith((BOOTSTRAP, HANLEY, MEAN)) and self.value == 1 and self.stderr == 0:
            low = wilson(self.n, self.n, level)[0]
        bounded = self.method.startswith((FISHER, HANLEY, BOOTSTRAP)) and abs(self.value) <= 1
        return (max(-1.0, low), min(1.0, high)) if bounded else (low, high)
