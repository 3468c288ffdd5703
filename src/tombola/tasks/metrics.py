"""The registry of metrics and the kinds of task each is for. Their functions are in `tombola.evaluation`."""

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
    """A metric, called with predictions and labels.

    Attributes:
        function: Computes the value with its standard error.
        kinds: The kinds of task that it is for.
        labels: The required number of labels; None for any.
        share: Whether its values are proportions, shown in percent.
        lower_is_better: Whether a lower value is better, as for a perplexity.
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
        name: Its name in task files.
        kinds: The kinds of task that it is for. Its arguments depend on the kind: logits and label indices
            (classification), outputs and values (regression), logits and flags (multi-label), texts and `Answers`
            (question-answering), token ids and token ids (masked-lm), tags and tags (token-classification), the
            negative log-likelihoods of documents and their numbers of tokens, words and bytes (causal-lm), the
            log-likelihood and the length of every choice and the right choices (multiple-choice).
        labels: The required number of labels; None for any.
        share: Whether its values are proportions, shown in percent in tables.
        lower_is_better: Whether a lower value is better.
    """

    def register(function: F) -> F:
        metrics(name)(Metric(function, tuple(kinds), labels, share, lower_is_better))
        return function

    return register


def metrics_for(kind: str) -> list[str]:
    """Return the names of the metrics for a kind of task."""
    return [name for name, metric in metrics.items() if kind in metric.kinds]


def check_metrics(names: Sequence[str], kind: str, labels: int) -> None:
    """Raise a ValueError that names the metrics to use if one is not for a task.

    Args:
        names: The task's metrics.
        kind: The kind of task.
        labels: Its number of labels.
    """
    for name in names:
        if kind not in metrics[name].kinds:
            raise ValueError(
                f"metrics: {name} does not apply to a {kind} task; use {', '.join(metrics_for(kind))}"
            )
        if metrics[name].labels not in (None, labels):
            others = [name for name in metrics_for(kind) if metrics[name].labels in (None, labels)]
            raise ValueError(
                f"metrics: {name} is for {metrics[name].labels} labels, but the task has {labels}; use "
                f"{', '.join(others)}"
            )


def is_share(name: str) -> bool:
    """Return whether a metric is shown in percent. A group's metric (`accuracy/entailment`) follows the overall one.

    Args:
        name: The metric; an unregistered one, such as accuracy under attack, is a proportion.
    """
    known = _registered(name)
    return known is None or known.share


def lower_is_better(name: str) -> bool:
    """Return whether lower values of a metric are better.

    Args:
        name: The metric, possibly of a group.
    """
    known = _registered(name)
    return known is not None and known.lower_is_better


def merit(value: float, name: str) -> float:
    """Return a value with the sign that makes higher better, for comparing scores of any metric.

    Args:
        value: The value.
        name: Its metric.
    """
    return -value if lower_is_better(name) else value


def _registered(name: str) -> Metric | None:
    return dict(metrics.items()).get(name.partition("/")[0])
