"""A metric: the share of the second label among the predictions."""

from tombola.evaluation.scores import Score
from tombola.tasks.metrics import metric


@metric("positive_share", kinds=("classification",), labels=2)
def positive_share(logits, labels):
    """Share of examples that get the second label."""
    share = float((logits.argmax(axis=1) == 1).mean())
    return Score(share, (share * (1 - share) / len(labels)) ** 0.5, len(labels), "binomial")
