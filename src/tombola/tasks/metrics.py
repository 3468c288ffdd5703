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
    """

    function: Callable[[Any, Any], Score]
    kinds: tuple[str, ...]
    labels: int | None = None

    def __call__(self, predictions: Any, labels: Any) -> Score:
        """Compute the metric."""
        return self.function(predictions, labels)

    @property
    def about(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


metrics: Registry[Metric] = Registry("metric", ["tombola.evaluation.metrics", "tombola.evaluation.answers"])


def metric(name: str, *, kinds: Sequence[str], labels: int | None = None) -> Callable[[F], F]:
    """Register the decorated function as a metric.

    Args:
        name: What task files call it.
        kinds: The kinds of task that it is for. What it is given depends on the kind: logits and label numbers
            (classification), outputs and values (regression), texts and `Answers` (question-answering), token ids
            and token ids (masked-lm).
        labels: How many labels the task must have, where it is not for any number.
    """

    def register(function: F) -> F:
        metrics(name)(Metric(function, tuple(kinds), labels))
        return function

    return register


def metrics_for(kind: str) -> list[str]:
    """The names of the metrics for a kind of task."""
    return [name for name, metric in metrics.items() if kind in metric.kinds]
