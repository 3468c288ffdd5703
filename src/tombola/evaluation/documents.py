"""The likelihood of documents under a causal language model, token by token."""

import re
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
import torch.nn.functional as F

from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, evaluators
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import BatchOptions, each_batch, require_finite
from tombola.tasks import Collate, Encoded, Split
from tombola.tasks.definition import IGNORED
from tombola.tasks.packing import Packed

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SPACE = re.compile(r"\s+")


def token_losses(
    model: "PreTrainedModel",
    data: Encoded,
    collate: Collate,
    **options: Unpack[BatchOptions],
) -> np.ndarray:
    """Return the negative log-likelihood of the label at every position of the data, in order; 0 without a label."""
    losses = np.zeros(int(data.offsets[-1]), dtype=np.float64)

    def take(members: np.ndarray, batch: dict[str, Any], logits: torch.Tensor) -> None:
        labels = batch["labels"].to(logits.device)
        for member, rows, targets in zip(members.tolist(), logits, labels, strict=True):
            length = int(data.offsets[member + 1] - data.offsets[member])
            by_token = F.cross_entropy(rows.float(), targets, ignore_index=IGNORED, reduction="none")
            scored = require_finite(by_token[:length]).double().cpu().numpy()
            losses[data.offsets[member] : data.offsets[member + 1]] = scored

    each_batch(model, data, collate, take, **options)
    return losses


def text_counts(text: str) -> tuple[int, int]:
    """Return the number of words and bytes of a raw text, as lm-evaluation-harness counts them."""
    return len(_SPACE.split(text)), len(text.encode("utf-8", "surrogatepass"))


@evaluators("documents")
class Documents(Evaluator):
    """The negative log-likelihood of each document, and its tokens, words and bytes.

    The separator between documents serves as context but is not scored. For a single document the standard errors are
    over its blocks, with words and bytes in proportion to their tokens.
    """

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the likelihoods; predictions are (documents, 4): likelihood, tokens, words, bytes."""
        split, data = inputs.split, inputs.data
        assert isinstance(data, Packed)
        losses = token_losses(
            inputs.model, data, inputs.collate, precision=inputs.precision, progress=inputs.progress
        )
        table, notes = _by_document(split, data, losses), []
        if len(table) == 1:
            table = _by_block(data, losses, table[0])
            notes = [
                f"{split.task.name}/{split.name} is a single document, so its standard errors are computed over "
                f"{len(table)} blocks; set `documents` in the task's settings if the text has several."
            ]
        return Evaluation(score(split.task, table[:, 0], table[:, 1:]), table, notes)


def _by_document(split: Split, data: Packed, losses: np.ndarray) -> np.ndarray:
    scored = data.documents >= 0
    owners = data.documents[scored]
    sums = np.bincount(owners, weights=losses[scored], minlength=len(split))
    tokens = np.bincount(owners, minlength=len(split))
    table = np.array([[0, 0, *text_counts(text)] for (text,) in split.texts], dtype=np.float64)
    table[:, 0], table[:, 1] = sums, tokens
    return table


def _by_block(data: Packed, losses: np.ndarray, whole: np.ndarray) -> np.ndarray:
    scored = data.documents >= 0
    block = np.repeat(np.arange(len(data)), data.lengths)
    sums = np.bincount(block, weights=losses * scored, minlength=len(data))
    tokens = np.bincount(block, weights=scored, minlength=len(data))
    table = np.stack([sums, *(tokens * (count / whole[1]) for count in whole[1:])], axis=1)
    return table[tokens > 0]
