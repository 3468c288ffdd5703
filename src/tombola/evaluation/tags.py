"""Predict the tags of the words of sentences."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tombola.evaluation.classes import softmax
from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, Prediction, evaluators
from tombola.evaluation.labels import label_order
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import BatchOptions, each_batch, require_finite
from tombola.tasks import Collate, Split, Tagged
from tombola.tasks.definition import IGNORED
from tombola.tasks.metrics import metrics

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

NO_TAG = -1
"""The predicted tag of a word that the model never saw."""
OUTSIDE = "O"


def predict_tags(
    model: "PreTrainedModel",
    sentences: Tagged,
    collate: Collate,
    **options: Unpack[BatchOptions],
) -> list[np.ndarray]:
    """Return (words, tags) logits per sentence, at first sub-words; `Tagged.words_of` gives the words."""
    by_sentence: dict[int, np.ndarray] = {}

    def take(members: np.ndarray, batch: dict[str, Any], logits: "torch.Tensor") -> None:
        values = logits.float().cpu()
        for member, rows, labels in zip(members.tolist(), values, batch["labels"], strict=True):
            by_sentence[member] = require_finite(rows[labels != IGNORED]).numpy()

    each_batch(model, sentences, collate, take, **options)
    return [by_sentence[number] for number in range(len(sentences))]


@evaluators("tags")
class Tags(Evaluator):
    """A tag per word. Words after the model's last position or without a token get no tag."""

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the tags of all sentences."""
        split, data = inputs.split, inputs.data
        names = [*(split.task.labels or ()), ""]  # the last is for NO_TAG, which no word has
        order = label_order(inputs.model.config, split.task)
        logits = [order.arrange(rows) for rows in self._logits(inputs)]
        numbers = [_all_words(data, i, rows, len(split.labels[i])) for i, rows in enumerate(logits)]
        scores = score(
            split.task,
            [[names[number] for number in sentence] for sentence in numbers],
            [[names[number] for number in sentence] for sentence in split.labels],
        )
        lengths = [len(sentence) for sentence in split.labels]
        predictions = np.stack(
            [
                np.repeat(np.arange(len(split)), lengths),
                np.concatenate(numbers),
                np.concatenate([np.asarray(tags) for tags in split.labels]),
            ],
            axis=1,
        ).astype(np.int32)
        return Evaluation(scores, predictions, order.notes + _cut(inputs, sum(lengths)))

    def constant(self, split: Split) -> float | None:
        """Return the score of the most frequent tag for every word."""
        names = split.task.labels or []
        ((number, _),) = Counter(tag for tags in split.labels for tag in tags).most_common(1)
        true = [[names[tag] for tag in tags] for tags in split.labels]
        return metrics[split.task.headline]([[names[number]] * len(tags) for tags in true], true).value

    def label(self, inputs: Inputs) -> list[Prediction]:
        """Return the tags of each sentence's words, and the probabilities of all tags per word."""
        task, data = inputs.split.task, inputs.data
        assert isinstance(data, Tagged)
        names = task.labels or []
        order = label_order(inputs.model.config, task)
        predictions = []
        for number, rows in enumerate(self._logits(inputs)):
            words = inputs.split.texts[number][0].split(" ")
            unseen = OUTSIDE if OUTSIDE in names else ""
            tags, shares = [unseen] * len(words), [dict[str, float]() for _ in words]
            for word, row in zip(data.words_of(number).tolist(), softmax(order.arrange(rows)), strict=True):
                tags[word] = names[int(row.argmax())]
                shares[word] = dict(zip(names, row.tolist(), strict=True))
            predictions.append(Prediction(tuple(tags), tuple(shares)))
        return predictions

    @staticmethod
    def _logits(inputs: Inputs) -> list[np.ndarray]:
        assert isinstance(inputs.data, Tagged)
        return predict_tags(
            inputs.model, inputs.data, inputs.collate, precision=inputs.precision, progress=inputs.progress
        )


def _all_words(data: Any, number: int, logits: np.ndarray, words: int) -> np.ndarray:
    """Return the predicted tags of all words of a sentence."""
    tags = np.full(words, NO_TAG)
    tags[data.words_of(number)] = logits.argmax(axis=1)
    return tags


def _cut(inputs: Inputs, words: int) -> list[str]:
    assert isinstance(inputs.data, Tagged)
    if not inputs.data.cut:
        return []
    return [
        f"{inputs.data.cut} of {words} words of {inputs.split.task.name}/{inputs.split.name} are beyond the last "
        "token and count as missed: increase max_length if the model has more positions."
    ]
