"""Logits of a whole split, in batches of about equal numbers of tokens and hardly any padding."""

from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import torch
from transformers import PreTrainedModel

from tombola.tasks import Collate, Encoded

BATCH_TOKENS = 2048  # see benchmarks/evaluation.py
LARGEST_BATCH = 512  # examples; keeps the (examples, tokens, tokens) attention mask of tiny inputs small


def predict(
    model: PreTrainedModel,
    encoded: Encoded,
    collate: Collate,
    *,
    batch_tokens: int = BATCH_TOKENS,
    precision: Literal["fp32", "bf16"] = "fp32",
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """The model's logits as float32, one row per example in the order of the data.

    The model is put into eval mode and back. `progress` is called with the number of examples of each batch.
    """
    logits: np.ndarray | None = None
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), torch.autocast(model.device.type, torch.bfloat16, precision == "bf16"):
            for members in batches(encoded.lengths, batch_tokens):
                batch = collate([encoded[i] for i in members.tolist()])
                inputs = {name: batch[name].to(model.device) for name in encoded.model_inputs}
                rows = model(**inputs).logits.float().cpu().numpy()
                if logits is None:
                    logits = np.empty((len(encoded), rows.shape[1]), dtype=np.float32)
                logits[members] = rows
                if progress is not None:
                    progress(len(members))
    finally:
        model.train(training)
    assert logits is not None
    return logits


def batches(lengths: np.ndarray, batch_tokens: int) -> Iterator[np.ndarray]:
    """Indices of examples, longest first, cut so that a padded batch holds at most `batch_tokens` tokens."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = min(max(1, batch_tokens // int(lengths[order[start]])), LARGEST_BATCH)
        yield order[start : start + size]
        start += size
