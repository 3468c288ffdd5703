"""Robustness as a curve: the accuracy that an attack leaves if it may change only so many words of a text."""

from collections.abc import Sequence
from dataclasses import dataclass

from tombola.evaluation.intervals import wilson

LIMITS: tuple[int | None, ...] = (0, 1, 2, 3, 4, 5, 10, 20, None)
"""Numbers of changed words on the curve; None is any number."""


@dataclass(frozen=True)
class LimitedAccuracy:
    """Accuracy under an attack that may change at most `words` words of a text, with its 95 % interval.

    Attributes:
        words: The limit; None is no limit, so that this is the accuracy under attack. At 0 it is the clean accuracy.
        accuracy: The share of examples that are right and stay right.
        low: Lower end of Wilson's interval.
        high: Upper end.
    """

    words: int | None
    accuracy: float
    low: float
    high: float


def accuracy_by_words(n: int, right: int, broken: Sequence[int]) -> list[LimitedAccuracy]:
    """The curve of an attack.

    A text that the attack broke by changing k words counts as right below k and as wrong from k on. Attacks are
    greedy: another one may break the text with fewer words. So the curve is an upper bound of the accuracy that an
    attacker with such a limit leaves.

    Args:
        n: The examples.
        right: How many of them the model had right before the attack.
        broken: For each example that the attack broke, the words that it changed.
    """
    curve = []
    for limit in LIMITS:
        left = right - sum(limit is None or words <= limit for words in broken)
        curve.append(LimitedAccuracy(limit, left / n, *wilson(left, n)))
    return curve
