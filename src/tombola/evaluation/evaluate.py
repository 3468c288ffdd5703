"""A model on a split in one call: tokenise, predict, score."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tombola.errors import ModelError
from tombola.evaluation.metrics import Score, score
from tombola.evaluation.predict import predict
from tombola.evaluation.spans import predict_spans
from tombola.evaluation.tokens import predict_tokens
from tombola.tasks import Blocks, Split, Task, Windows, collate_of, encode, fitting_length


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by metric, the predictions they come from, and remarks for the reader.

    Predictions are logits in the task's label order, one row per example; of questions the characters of the
    context that answer each, from first to after the last; of passages the predicted and the true id of each
    masked token.
    """

    scores: dict[str, Score]
    predictions: np.ndarray
    notes: list[str] = field(default_factory=list)


def evaluate_split(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    split: Split,
    max_length: int = 128,
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Evaluation:
    """Score the model on the split. Inputs are cut at `max_length` or at the model's last position."""
    task = split.task
    data = encode(split, tokenizer, fitting_length(max_length, model.config))
    collate = collate_of(task, tokenizer)
    if isinstance(data, Windows):
        spans = predict_spans(model, data, collate, unanswerable=task.unanswerable, precision=precision)
        texts = [context[a:b] for (_, context), (a, b) in zip(split.texts, spans.tolist(), strict=True)]
        return Evaluation(score(task, texts, split.labels), spans)
    if isinstance(data, Blocks):
        tokens = predict_tokens(model, data, collate, precision=precision)
        return Evaluation(score(task, *tokens.T), tokens)
    columns, notes = label_columns(model, task)
    logits = predict(model, data, collate, precision=precision)[:, columns]
    return Evaluation(score(task, logits, split.labels), logits, notes)


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
