"""Robustness as a curve: accuracy under attack by the number of words that the attack may change."""

from collections.abc import Sequence
from dataclasses import dataclass

from tombola.evaluation.intervals import wilson

LIMITS: tuple[int | None, ...] = (0, 1, 2, 3, 4, 5, 10, 20, None)
"""Numbers of changed words on the curve; None means any number."""


@dataclass(frozen=True)
class LimitedAccuracy:
    """Accuracy under an attack that may change at most `words` words of a text, with its 95 % interval.

    Attributes:
        words: The limit; None means no limit, the usual accuracy under attack. At 0 it is the clean accuracy.
        accuracy: The fraction of examples that are correct and stay correct.
        low: Lower end of Wilson's interval.
        high: Upper end.
    """

    words: int | None
    accuracy: float
    low: float
    high: float


def accuracy_by_words(n: int, right: int, broken: Sequence[int]) -> list[LimitedAccuracy]:
    """Return the curve of an attack.

    A text that the attack broke by changing k words counts as correct below k and as wrong from k on. Attacks are
    greedy, and another might break the text with fewer words, so the curve is an upper bound on the accuracy under
    such a limit.

    Args:
        n: The number of examples.
        right: The number of examples that the model classified correctly before the attack.
        broken: The number of changed words for each example that the attack broke.
    """
    curve = []
    for limit in LIMITS:
        correct = right - sum(limit is None or words <= limit for words in broken)
        curve.append(LimitedAccuracy(limit, correct / n, *wilson(correct, n)))
    return curve
