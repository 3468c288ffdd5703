"""Predict masked tokens with a language model."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, evaluators
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import each_batch, require_finite
from tombola.foundations.hardware import Precision
from tombola.tasks import Blocks, Collate
from tombola.tasks.definition import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BATCH_TOKENS = 1024  # each has a logit for every entry of the vocabulary


def predict_tokens(
    model: "PreTrainedModel",
    blocks: Blocks,
    collate: Collate,
    *,
    batch_tokens: int = BATCH_TOKENS,
    precision: Precision = "fp32",
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Return the predicted and the true id of every masked token, (tokens, 2) in data order."""
    found: dict[int, np.ndarray] = {}

    def take(members: np.ndarray, batch: dict[str, Any], logits: torch.Tensor) -> None:
        labels = batch["labels"]
        asked = labels != IGNORED
        guesses = torch.full_like(labels, IGNORED)
        guesses[asked] = require_finite(logits.cpu()[asked]).argmax(dim=-1)
        for member, guess, label, here in zip(members.tolist(), guesses, labels, asked, strict=True):
            found[member] = torch.stack([guess[here], label[here]], dim=1).numpy().astype(np.int32)

    each_batch(
        model, blocks, collate, take, batch_tokens=batch_tokens, precision=precision, progress=progress
    )
    return np.concatenate([found[block] for block in range(len(blocks))])


@evaluators("masked tokens")
class MaskedTokens(Evaluator):
    """The predicted id of every masked token."""

    def evaluate(self, inputs: Inputs) -> Evaluation:
        """Score the predicted ids."""
        assert isinstance(inputs.data, Blocks)
        tokens = predict_tokens(
            inputs.model, inputs.data, inputs.collate, precision=inputs.precision, progress=inputs.progress
        )
        return Evaluation(score(inputs.split.task, *tokens.T), tokens)
