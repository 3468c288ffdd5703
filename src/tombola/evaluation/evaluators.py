"""Evaluators: how the predictions of a kind of task are made, scored and presented.

A kind of task names its evaluator (`TaskKind.evaluator`). A new evaluator is a class that registers itself here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from tombola.errors import DataError
from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.foundations.registry import Registry

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.tasks import Collate, Encoded, Split


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by metric, the predictions behind them, and notes for the reader.

    The headline metric also appears for each of the task's groups, as `accuracy/lexical_overlap`. Predictions are
    logits in the task's label order, one row per example. For questions they are the character span of each answer in
    its context, end exclusive; for passages the predicted and the true id of each masked token; for tagged sentences
    the sentence index, the predicted and the true tag of each word; for documents the negative log-likelihood and the
    numbers of tokens, words and bytes; for multiple-choice questions the log-likelihood and the length of every
    answer.
    """

    scores: dict[str, Score]
    predictions: np.ndarray
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Prediction:
    """A model's prediction for one example.

    Attributes:
        label: A label, a number, several labels, the tags of the words, or the text of an answer.
        probabilities: By label; for tagged sentences one mapping per word; may be empty.
    """

    label: str | float | tuple[str, ...]
    probabilities: dict[str, float] | tuple[dict[str, float], ...] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The inputs of an evaluator: a model, and a split as text and as token ids."""

    model: "PreTrainedModel"
    split: "Split"
    data: "Encoded"
    collate: "Collate"
    precision: Precision
    progress: Callable[[int], None] | None = None
    """Called with the number of rows of each batch."""


class Evaluator(Protocol):
    """Predicts and scores. Subclasses must define `evaluate`."""

    joins_windows: ClassVar[bool] = False
    """Whether it combines the windows of a long text (`TextWindows`) into one prediction."""

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the model's predictions against the split's labels."""
        ...

    def constant(self, split: "Split") -> float | None:
        """Return the headline score of the best constant prediction; None if there is none."""
        return None

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the model's prediction for each example, in the split's order."""
        task = inputs.split.task
        raise DataError(f"{task.name} is a {task.kind} task, which has nothing to predict for new texts.")


evaluators: Registry[type[Evaluator]] = Registry(
    "evaluator",
    [f"tombola.evaluation.{name}" for name in ("choices", "classes", "documents", "spans", "tags", "tokens")],
)
