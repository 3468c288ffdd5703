"""Which output of a model means which label: models of one task differ in label order, most of all in NLI."""

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

from tombola.errors import ModelError
from tombola.tasks import Task
from tombola.tasks.labels import outputs_by_label

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

_UNNAMED = re.compile(r"(?:label_)?(\d+)", re.IGNORECASE)
SUSPICIOUS = 0.2  # accuracy that another order of unnamed labels would win
FEWEST = 30  # examples below which an order that looks better may be chance


class LabelOrder(NamedTuple):
    """Of each of the task's labels, the model's outputs that mean it; whether the model names them; remarks."""

    outputs: list[list[int]]
    named: bool
    notes: list[str]

    def arrange(self, logits: np.ndarray) -> np.ndarray:
        """Logits in the task's order. Of several outputs that mean one label the largest counts.

        So the prediction is the model's own, mapped to the task's labels, as HANS is published; adding up the
        probabilities of `neutral` and `contradiction` would turn some predictions of `entailment` over.
        """
        return np.stack([logits[:, places].max(axis=1) for places in self.outputs], axis=1)


def label_order(config: "PreTrainedConfig", task: Task) -> LabelOrder:
    """The order of a model's labels, by their names; by place where it does not name them; else an error."""
    count = config.num_labels
    in_place = [[output] for output in range(count)]
    if task.labels is None:
        return LabelOrder(_same_count(count, task, in_place), True, [])
    names = [str(config.id2label[output]) for output in range(count)]
    if all((found := _UNNAMED.fullmatch(name)) and int(found[1]) == i for i, name in enumerate(names)):
        return LabelOrder(_same_count(count, task, in_place), False, [])
    _require_one_order(config, names)
    outputs = outputs_by_label(names, task)
    if outputs is None:
        _same_count(count, task, in_place)
        raise ModelError(
            f"The model's labels are {names}, those of the task {task.name!r} are {task.labels}: "
            "set model.config.id2label to the task's names in the order of the model's outputs."
        )
    if outputs == in_place:
        return LabelOrder(outputs, True, [])
    how = "merged" if count > len(outputs) else "rearranged"
    note = f"The model's label order {names} was {how} by name to the task's {task.labels}."
    return LabelOrder(outputs, True, [note])


def order_doubts(task: Task, logits: np.ndarray, labels: np.ndarray) -> list[str]:
    """A remark if a model that does not name its labels would be far better with them in another order."""
    classes = len(task.labels or ())
    counts = confusion_matrix(labels, logits.argmax(axis=1), labels=range(classes))
    true, predicted = linear_sum_assignment(counts, maximize=True)
    n, found, best = counts.sum(), np.trace(counts), counts[true, predicted].sum()
    if n < FEWEST or best - found < SUSPICIOUS * n:
        return []
    order = [str((task.labels or ())[label]) for _, label in sorted(zip(predicted, true, strict=True))]
    return [
        f"The model does not name its labels, and was right on {found / n:.0%} with them in the task's order; with "
        f"its outputs as {order} it would be on {best / n:.0%}: look up its order and set config.id2label."
    ]


def _same_count(count: int, task: Task, outputs: list[list[int]]) -> list[list[int]]:
    if count == task.num_labels:
        return outputs
    remedy = " The model must name its outputs in config.id2label to be merged." if task.merge else ""
    raise ModelError(
        f"The model has {count} outputs, but the task {task.name!r} needs {task.num_labels}.{remedy}"
    )


def _require_one_order(config: "PreTrainedConfig", names: list[str]) -> None:
    """Configs are edited by hand, and then `id2label` and `label2id` may contradict each other."""
    numbers = config.label2id or {}
    if set(numbers) == set(names) and any(int(numbers[name]) != i for i, name in enumerate(names)):
        raise ModelError(
            f"The model's config contradicts itself: id2label says {names}, label2id says {dict(numbers)}. "
            "Correct the wrong one."
        )
