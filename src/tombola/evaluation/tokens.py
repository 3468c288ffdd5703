"""Predict masked tokens with a language model."""

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch

from tombola.evaluation.evaluators import Evaluation, Evaluator, Inputs, evaluators
from tombola.evaluation.metrics import score
from tombola.evaluation.predict import BatchOptions, each_batch, require_finite
from tombola.tasks import Blocks, Collate
from tombola.tasks.definition import IGNORED

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def predict_tokens(
    model: "PreTrainedModel",
    blocks: Blocks,
    collate: Collate,
    **options: Unpack[BatchOptions],
) -> np.ndarray:
    """Return the predicted and the true id of every masked token, (tokens, 2) in data order."""
    by_block: dict[int, np.ndarray] = {}

    def take(members: np.ndarray, batch: dict[str, Any], logits: torch.Tensor) -> None:
        labels = batch["labels"]
        masked = labels != IGNORED
        guesses = torch.full_like(labels, IGNORED)
        guesses[masked] = require_finite(logits.cpu()[masked]).argmax(dim=-1)
        for member, guess, label, places in zip(members.tolist(), guesses, labels, masked, strict=True):
            by_block[member] = torch.stack([guess[places], label[places]], dim=1).numpy().astype(np.int32)

    each_batch(model, blocks, collate, take, **options)
    return np.concatenate([by_block[block] for block in range(len(blocks))])


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
