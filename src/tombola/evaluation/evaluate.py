"""A model on a split in one call: tokenise, predict, score."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tombola.evaluation.labels import label_order, order_doubts
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import predict
from tombola.evaluation.scores import Score
from tombola.evaluation.spans import predict_spans
from tombola.evaluation.tokens import predict_tokens
from tombola.foundations.hardware import Precision
from tombola.store.stage import Progress
from tombola.tasks import Blocks, Split, Windows, collate_of, encode, fitting_length
from tombola.tasks.metrics import metrics

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores by metric, the predictions they come from, and remarks for the reader.

    The headline metric stands there for each of the task's groups too, as `accuracy/lexical_overlap`.
    Predictions are logits in the task's label order, one row per example; of questions the characters of the
    context that answer each, from first to after the last; of passages the predicted and the true id of each
    masked token.
    """

    scores: dict[str, Score]
    predictions: np.ndarray
    notes: list[str] = field(default_factory=list)


def evaluate_split(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    split: Split,
    max_length: int = 128,
    precision: Precision = "fp32",
    progress: Progress | None = None,
) -> Evaluation:
    """Score the model on the split. Inputs are cut at `max_length` or at the model's last position.

    `progress` is called after each batch with the rows done and the rows in all.
    """
    task = split.task
    data = encode(split, tokenizer, fitting_length(max_length, model.config))
    count = _counter(progress, len(data))
    collate = collate_of(task, tokenizer)
    if isinstance(data, Windows):
        spans = predict_spans(
            model, data, collate, unanswerable=task.unanswerable, precision=precision, progress=count
        )
        texts = [context[a:b] for (_, context), (a, b) in zip(split.texts, spans.tolist(), strict=True)]
        return Evaluation(score(task, texts, split.labels), spans)
    if isinstance(data, Blocks):
        tokens = predict_tokens(model, data, collate, precision=precision, progress=count)
        return Evaluation(score(task, *tokens.T), tokens)
    order = label_order(model.config, task)
    logits = order.arrange(predict(model, data, collate, precision=precision, progress=count))
    scores = score(task, logits, split.labels) | group_scores(split, logits)
    doubts = [] if order.named else order_doubts(task, logits, np.asarray(split.labels))
    return Evaluation(scores, logits, order.notes + doubts)


def _counter(progress: Progress | None, rows: int) -> Callable[[int], None] | None:
    """Adds up the rows of batches."""
    if progress is None:
        return None
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        progress(done, rows, {})

    return count


def group_scores(split: Split, logits: np.ndarray) -> dict[str, Score]:
    """The headline metric in each of the task's groups that the data has, as `accuracy/lexical_overlap`."""
    task, labels = split.task, np.asarray(split.labels)
    found: dict[str, Score] = {}
    if task.labels is None:
        return found
    columns = {"label": [task.labels[label] for label in split.labels], **split.columns}
    for group in task.grouped:
        if not set(group) <= set(columns):
            continue
        values = ["/".join(map(str, row)) for row in zip(*(columns[name] for name in group), strict=True)]
        for value in dict.fromkeys(values):
            members = np.array([one == value for one in values])
            found[f"{task.headline}/{value}"] = metrics[task.headline](logits[members], labels[members])
    return found


def constant_score(split: Split) -> float | None:
    """The headline score of the best constant prediction: one class for all, or one number.

    None for questions and passages, which have no constant answer.
    """
    task = split.task
    if task.kind not in ("regression", "classification"):
        return None
    labels = np.asarray(split.labels)
    if task.labels is None:
        guesses = [np.full((len(labels), 1), labels.mean())]
    else:
        answers = np.eye(len(task.labels))
        guesses = [np.tile(answer, (len(labels), 1)) for answer in answers]
    return max(metrics[task.headline](guess, labels).value for guess in guesses)
