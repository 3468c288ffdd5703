"""A score: a metric's value and how sure it is."""

from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any, Self

from tombola.evaluation.intervals import normal_quantile, wilson

DELTA = "delta method"
LARGEST_LOG = 700.0
"""Exponentials of more are not numbers that a file can hold."""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, its standard error, the number of examples, and how the error was found.

    `DELTA` is the method of an exponential of a mean (a perplexity), whose error is about normal on the log scale.
    """

    value: float
    stderr: float
    n: int
    method: str

    @classmethod
    def of_share(cls, share: float, n: int) -> Self:
        """A share of `n` examples."""
        return cls(share, (share * (1 - share) / n) ** 0.5, n, "binomial")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Back from JSON."""
        return cls(**content)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval: Wilson's for a share, normal on the log scale for a perplexity.

        Else it is normal and kept within [-1, 1], or as it is where the value itself lies outside.
        """
        if self.method == "binomial":
            return wilson(round(self.value * self.n), self.n, level)
        half = normal_quantile((1 + level) / 2) * self.stderr
        if self.method == DELTA:
            centre, half = log(self.value), half / self.value
            return exp(max(centre - half, -LARGEST_LOG)), exp(min(centre + half, LARGEST_LOG))
        if abs(self.value) > 1:
            return self.value - half, self.value + half
        return max(-1.0, self.value - half), min(1.0, self.value + half)
