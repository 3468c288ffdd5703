"""Logits of a whole split, in batches with about equal numbers of tokens and little padding."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import torch

from tombola.errors import ModelError
from tombola.foundations.hardware import Precision, autocast
from tombola.objectives import logits_of
from tombola.tasks import Collate, Encoded, set_padding

if TYPE_CHECKING:
    from transformers import PreTrainedModel

BATCH_TOKENS = 1024  # the best of 256 to 8192 on CPU, see benchmarks/evaluation.py
LARGEST_BATCH = 512  # examples; keeps the (examples, tokens, tokens) attention mask of tiny inputs small


class BatchOptions(TypedDict, total=False):
    """The options of `each_batch`, which all predictions accept."""

    batch_tokens: int
    precision: Precision
    progress: Callable[[int], None] | None


def predict(
    model: "PreTrainedModel",
    encoded: Encoded,
    collate: Collate,
    **options: Unpack[BatchOptions],
) -> np.ndarray:
    """Return the model's logits as float32, one row per example in data order."""
    rows, order = [], []

    def take(members: np.ndarray, batch: dict[str, Any], logits: torch.Tensor) -> None:
        rows.append(logits.float().cpu().numpy())
        order.append(members)

    each_batch(model, encoded, collate, take, **options)
    logits = np.concatenate(rows)
    return logits[np.argsort(np.concatenate(order))]


def each_batch(
    model: "PreTrainedModel",
    encoded: Encoded,
    collate: Collate,
    take: Callable[[np.ndarray, dict[str, Any], torch.Tensor], None],
    *,
    batch_tokens: int = BATCH_TOKENS,
    precision: Precision = "fp32",
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run the model over the data, and call `take` with each batch's example indices, the batch and its logits.

    `progress` is called with the number of rows of each batch.
    """
    with evaluating(model, collate.pad_id), torch.inference_mode(), autocast(model.device.type, precision):
        for members in batches(encoded.lengths, batch_tokens):
            batch = collate([encoded[i] for i in members.tolist()])
            inputs = {name: batch[name].to(model.device) for name in encoded.model_inputs}
            take(members, batch, logits_of(model(**inputs)))
            if progress is not None:
                progress(len(members))


def require_finite(logits: torch.Tensor) -> torch.Tensor:
    """Return the logits; raise ModelError if one is not finite."""
    if not bool(torch.isfinite(logits).all()):
        raise ModelError(
            "The model's outputs are NaN or infinite: train it again, with a lower learning rate or with precision: "
            "fp32."
        )
    return logits


@contextmanager
def evaluating(model: "PreTrainedModel", pad_id: int | None) -> Iterator[None]:
    """Put the model in eval mode, with the padding token of its batches, and restore both."""
    training, pad_token_id = model.training, model.config.pad_token_id
    model.eval()
    if pad_id is not None:
        set_padding(model.config, pad_id)
    try:
        yield
    finally:
        model.config.pad_token_id = pad_token_id
        model.train(training)


def batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Yield indices of examples, longest first, such that a padded batch holds at most `batch_tokens` tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = min(max(1, batch_tokens // int(lengths[order[start]])), LARGEST_BATCH)
        yield order[start : start + size]
        start += size
