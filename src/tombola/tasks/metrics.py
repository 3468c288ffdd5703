"""Metrics, as task files name them: what kinds of task each is for. Their functions are in `tombola.evaluation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tombola.foundations.registry import Registry

if TYPE_CHECKING:
    from tombola.evaluation.scores import Score

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """A metric, which is called with predictions and labels.

    Attributes:
        function: Computes the value with its standard error.
        kinds: The kinds of task that it is for.
        labels: How many labels the task must have; None: any number.
        share: Whether its values are shares, which are written in percent.
        lower_is_better: Whether a smaller value is the better one, as of a perplexity.
    """

    function: Callable[[Any, Any], Score]
    kinds: tuple[str, ...]
    labels: int | None = None
    share: bool = True
    lower_is_better: bool = False

    def __call__(self, predictions: Any, labels: Any) -> Score:
        """Compute the metric."""
        return self.function(predictions, labels)

    @property
    def about(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


metrics: Registry[Metric] = Registry(
    "metric",
    [f"tombola.evaluation.{name}" for name in ("metrics", "answers", "label_sets", "entities", "perplexity")],
)


def metric(
    name: str,
    *,
    kinds: Sequence[str],
    labels: int | None = None,
    share: bool = True,
    lower_is_better: bool = False,
) -> Callable[[F], F]:
    """Register the decorated function as a metric.

    Args:
        name: What task files call it.
        kinds: The kinds of task that it is for. What it is given depends on the kind: logits and label numbers
            (classification), outputs and values (regression), logits and flags (multi-label), texts and `Answers`
            (question-answering), token ids and token ids (masked-lm), tags and tags (token-classification), the
            negative log-likelihoods of documents and their numbers of tokens, words and bytes (causal-lm), the
            log-likelihood and the length of every choice and the right choices (multiple-choice).
        labels: How many labels the task must have, where it is not for any number.
        share: Whether its values are shares, which tables write in percent.
        lower_is_better: Whether a smaller value is the better one.
    """

    def register(function: F) -> F:
        metrics(name)(Metric(function, tuple(kinds), labels, share, lower_is_better))
        return function

    return register


def metrics_for(kind: str) -> list[str]:
    """The names of the metrics for a kind of task."""
    return [name for name, metric in metrics.items() if kind in metric.kinds]


def is_share(name: str) -> bool:
    """Whether a metric is written in percent. A group's metric (`accuracy/entailment`) is written as the whole's.

    Args:
        name: The metric; one that nobody registered, such as the accuracy under an attack, is a share.
    """
    known = _registered(name)
    return known is None or known.share


def lower_is_better(name: str) -> bool:
    """Whether the smaller of two values of a metric is the better one.

    Args:
        name: The metric, also of a group.
    """
    known = _registered(name)
    return known is not None and known.lower_is_better


def merit(value: float, name: str) -> float:
    """A value turned so that higher is better: what scores are compared by, whatever their metric.

    Args:
        value: The value.
        name: Its metric.
    """
    return -value if lower_is_better(name) else value


def _registered(name: str) -> Metric | None:
    return dict(metrics.items()).get(name.partition("/")[0])
