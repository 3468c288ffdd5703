"""Which words a language model puts in the place of the masked ones, and how many of them are right."""

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tombola.evaluation.metrics import metrics
from tombola.evaluation.predict import each_batch, require_finite
from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.tasks import Blocks, Collate
from tombola.tasks.blocks import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BATCH_TOKENS = 1024  # each has a logit for every word of the vocabulary


def predict_tokens(
    model: "PreTrainedModel",
    blocks: Blocks,
    collate: Collate,
    *,
    batch_tokens: int = BATCH_TOKENS,
    precision: Precision = "fp32",
) -> np.ndarray:
    """The predicted and the true id of every token that is asked for, (tokens, 2) in the order of the data."""
    found: dict[int, np.ndarray] = {}

    def take(members: np.ndarray, batch: dict[str, Any], logits: torch.Tensor) -> None:
        labels = batch["labels"]
        asked = labels != IGNORED
        guesses = torch.full_like(labels, IGNORED)
        guesses[asked] = require_finite(logits.cpu()[asked]).argmax(dim=-1)
        for member, guess, label, here in zip(members.tolist(), guesses, labels, asked, strict=True):
            found[member] = torch.stack([guess[here], label[here]], dim=1).numpy().astype(np.int32)

    each_batch(model, blocks, collate, take, batch_tokens=batch_tokens, precision=precision)
    return np.concatenate([found[block] for block in range(len(blocks))])


@metrics("masked_accuracy")
def masked_accuracy(predicted: np.ndarray, labels: np.ndarray) -> Score:
    """Share of the masked tokens that are found; binomial error. Labels of −100 do not count.

    (BERT-Tickets' released code averages the shares of batches weighted by all of their tokens: the mean then
    depends on the batches. Here every masked token counts once.)
    """
    asked = labels != IGNORED
    n = int(asked.sum())
    share = float((predicted[asked] == labels[asked]).mean())
    return Score(share, sqrt(share * (1 - share) / n), n, "binomial")
