"""Map a model's outputs to a task's labels: models of one task differ in label order, especially in NLI."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

from tombola.errors import ModelError
from tombola.tasks import Task
from tombola.tasks.labels import are_unnamed, outputs_by_label

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SUSPICIOUS = 0.2  # gain in accuracy by another order of unnamed labels
FEWEST = 30  # with fewer examples, a better order may be chance


class LabelOrder(NamedTuple):
    """The model outputs for each of the task's labels, whether the model names its labels, and notes."""

    outputs: list[list[int]]
    named: bool
    notes: list[str]

    def arrange(self, logits: np.ndarray) -> np.ndarray:
        """Return logits in the task's order. If several outputs map to one label, the largest counts.

        So the prediction is the model's own, mapped to the task's labels, as published for HANS; adding the
        probabilities of `neutral` and `contradiction` would overturn some predictions of `entailment`.
        """
        return np.stack([logits[:, places].max(axis=1) for places in self.outputs], axis=1)


def label_order(config: "PreTrainedConfig", task: Task) -> LabelOrder:
    """Return the order of a model's labels by name, or by position if unnamed; raise an error if neither fits."""
    count = config.num_labels
    in_place = [[output] for output in range(count)]
    if task.labels is None:
        return LabelOrder(_same_count(count, task, in_place), True, [])
    names = [str(config.id2label[output]) for output in range(count)]
    if are_unnamed(names):
        return LabelOrder(_same_count(count, task, in_place), False, [])
    _require_one_order(config, names)
    outputs = outputs_by_label(names, task)
    if outputs is None:
        _same_count(count, task, in_place)
        raise ModelError(
            f"The model's labels are {names}, but those of the task {task.name!r} are {task.labels}: set id2label in "
            f"the model's config.json to the task's names, in the order of the model's outputs{_or_name(task, names)}."
        )
    if outputs == in_place:
        return LabelOrder(outputs, True, [])
    how = "merged" if count > len(outputs) else "rearranged"
    note = f"The model's label order {names} was {how} by name to the task's {task.labels}."
    return LabelOrder(outputs, True, [note])


def order_doubts(task: Task, logits: np.ndarray, labels: np.ndarray) -> list[str]:
    """Note if a model with unnamed labels would be far better with them in another order."""
    classes = len(task.labels or ())
    counts = confusion_matrix(labels, logits.argmax(axis=1), labels=range(classes))
    true, predicted = linear_sum_assignment(counts, maximize=True)
    n, correct, best = counts.sum(), np.trace(counts), counts[true, predicted].sum()
    if n < FEWEST or best - correct < SUSPICIOUS * n:
        return []
    order = [str((task.labels or ())[label]) for _, label in sorted(zip(predicted, true, strict=True))]
    return [
        f"The model does not name its labels. In the task's order, its predictions were correct for {correct / n:.0%}; "
        f"with its outputs in the order {order}, they would be correct for {best / n:.0%}: look up the order and set "
        "config.id2label."
    ]


def _same_count(count: int, task: Task, outputs: list[list[int]]) -> list[list[int]]:
    if count == task.num_labels:
        return outputs
    remedy = " The model must name its outputs in config.id2label to be merged." if task.merge else ""
    raise ModelError(
        f"The model has {count} outputs, but the task {task.name!r} needs {task.num_labels}.{remedy}"
    )


def _or_name(task: Task, names: list[str]) -> str:
    """Return another remedy if the labels of the task are mere numbers: its file can name them as the model does."""
    if task.labels != [str(number) for number in range(len(names))]:
        return ""
    return f", or, if the numbers in the data follow that order, set `labels: [{', '.join(names)}]` in the task file"


def _require_one_order(config: "PreTrainedConfig", names: list[str]) -> None:
    """Reject hand-edited configs whose `id2label` and `label2id` contradict each other."""
    numbers = config.label2id or {}
    if set(numbers) == set(names) and any(int(numbers[name]) != i for i, name in enumerate(names)):
        raise ModelError(
            f"The model's config contradicts itself: id2label says {names}, label2id says {dict(numbers)}. "
            "Correct the wrong one."
        )
