"""A model on a split in one call: tokenise, predict, put the labels in the task's order, score."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tombola.errors import ModelError
from tombola.evaluation.metrics import Score, score
from tombola.evaluation.predict import predict
from tombola.tasks import Collate, Split, Task, encode, position_limit


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by metric, the logits they come from in the task's label order, and remarks for the reader."""

    scores: dict[str, Score]
    logits: np.ndarray
    notes: list[str] = field(default_factory=list)


def evaluate_split(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    split: Split,
    max_length: int = 128,
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Evaluation:
    """Score the model on the split. Inputs are cut at `max_length` or at the model's last position."""
    columns, notes = label_columns(model, split.task)
    limit = min(max_length, position_limit(model.config) or max_length)
    collate = Collate(tokenizer, regression=split.task.kind == "regression")
    logits = predict(model, encode(split, tokenizer, limit), collate, precision=precision)[:, columns]
    return Evaluation(score(split.task, logits, split.labels), logits, notes)


def label_columns(model: PreTrainedModel, task: Task) -> tuple[list[int], list[str]]:
    """Which output of the model stands for each of the task's labels, by name where the model names its labels.

    Models of the same task differ in label order (most of all in NLI); scored by position they look broken.
    """
    outputs = model.config.num_labels
    if outputs != task.num_labels:
        raise ModelError(
            f"The model has {outputs} outputs, but the task {task.name!r} needs {task.num_labels}."
        )
    in_place = list(range(outputs))
    theirs = [str(model.config.id2label[i]) for i in in_place]
    if task.labels is None or theirs == [f"LABEL_{i}" for i in in_place]:
        return in_place, []
    names = [name.casefold() for name in theirs]
    wanted = [name.casefold() for name in task.labels]
    if names == wanted:
        return in_place, []
    if sorted(names) != sorted(wanted):
        raise ModelError(
            f"The model's labels are {theirs}, those of the task {task.name!r} are {task.labels}: "
            "set model.config.id2label to the task's names in the order of the model's outputs."
        )
    note = f"The model's label order {theirs} was rearranged by name to the task's {task.labels}."
    return [names.index(name) for name in wanted], [note]
