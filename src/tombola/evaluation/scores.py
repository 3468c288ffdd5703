"""A score: a metric's value and how sure it is."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from tombola.evaluation.intervals import normal_quantile, wilson


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value, its standard error, the number of examples, and how the error was found."""

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
        """Confidence interval: Wilson's for a share, else normal and kept within [-1, 1]."""
        if self.method == "binomial":
            return wilson(round(self.value * self.n), self.n, level)
        half = normal_quantile((1 + level) / 2) * self.stderr
        return max(-1.0, self.value - half), min(1.0, self.value + half)
