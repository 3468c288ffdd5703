"""A classifier as an oracle: texts in, probabilities out, in length-sorted batches with little padding.

A text must get the same answer whatever else is in its batch, or an attack run in lock-step would sometimes decide
differently from one that runs alone. But the last bits of a matrix product depend on the batch's shape. So logits are
rounded to a grid far coarser than that noise, and the few that lie so close to the middle between two grid points
that noise could move them across are recomputed, alone and unpadded. (The noise of bf16 is far greater: there,
lock-step and single runs agree on nearly all examples, but not all.)
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from tombola.errors import ModelError
from tombola.evaluation.predict import batches
from tombola.foundations.hardware import Precision, autocast
from tombola.tasks.encoding import Collate, fitting_length

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.evaluation.labels import LabelOrder

Columns = tuple[str, ...]
Rows = list[dict[str, list[int]]]

BATCH_TOKENS = 2048

STEP = 2.0**-7  # grid step of the logits: odds that differ by less than 0.8 % count as equal
SLACK = 2e-5  # above the noise of 32-bit floats, which reached 5e-6 at 6 and 12 layers and logits up to 8


class Scorer:
    """Computes a sequence classifier's probabilities for texts of one or two columns; counts the rows it has scored.

    `order` says which outputs of the model mean which label; by default each means the label of its place.
    """

    def __init__(
        self,
        model: "PreTrainedModel",
        tokenizer: "PreTrainedTokenizerBase",
        *,
        max_length: int = 128,
        precision: Precision = "fp32",
        order: "LabelOrder | None" = None,
    ) -> None:
        self.model, self.tokenizer, self.collate = model, tokenizer, Collate(tokenizer)
        self.order = order
        self.max_length = fitting_length(max_length, model.config)
        self.precision = precision
        self.rows = 0

    def __call__(self, texts: Sequence[Columns]) -> np.ndarray:
        """Return probabilities (texts, labels) in double precision; each row depends only on its text."""
        encoded = tokenize(self.tokenizer, texts, self.max_length)
        logits = self._logits(encoded)
        if not np.isfinite(logits).all():
            bad = texts[int(np.flatnonzero(~np.isfinite(logits).all(axis=1))[0])]
            raise ModelError(
                f"The model's outputs for {bad[0][:60]!r} are NaN or infinite: train it again, with a lower "
                "learning rate or with precision: fp32."
            )
        doubtful = near_edge(logits, STEP, SLACK).any(axis=1) | near_tie(logits, SLACK)
        doubtful |= [len(row["input_ids"]) == 1 for row in encoded]  # a lone token may look like padding
        for i in np.flatnonzero(doubtful).tolist():
            logits[i] = self._logits([encoded[i]])[0]
        self.rows += len(texts)
        return probabilities(logits)

    def _logits(self, encoded: Rows) -> np.ndarray:
        with autocast(self.model.device.type, self.precision):
            logits = in_batches(
                lambda batch: self.model(**on(self.model.device, batch)).logits,
                encoded,
                self.collate,
            )
        return logits if self.order is None else self.order.arrange(logits)


def tokenize(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[Columns], max_length: int) -> Rows:
    """Return the token ids (and token types, if the model has them) of each text, truncated but not padded.

    An attack may delete the only word of a text. If nothing is left to read, not even special tokens, the model gets
    the token that begins or ends texts.
    """
    columns = [list(column) for column in zip(*texts, strict=True)]
    limit = min(max_length, tokenizer.model_max_length)
    inputs = tokenizer(*columns, truncation=True, max_length=limit, return_attention_mask=False)
    names = list(inputs)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*inputs.values(), strict=True)]
    nothing = {name: [0] for name in names} | {"input_ids": [_outside(tokenizer)]}
    return [row if row["input_ids"] else nothing for row in rows]


def _outside(tokenizer: "PreTrainedTokenizerBase") -> int:
    """Return the token that begins texts, or else ends or pads them."""
    tokens = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return next((token for token in tokens if token is not None), 0)


def in_batches(
    forward: Callable[[dict[str, torch.Tensor]], torch.Tensor],
    encoded: Rows,
    collate: Collate,
) -> np.ndarray:
    """Run `forward` over batches of about `BATCH_TOKENS` tokens, longest rows first; return results in row order."""
    lengths = np.array([len(row["input_ids"]) for row in encoded])
    results: np.ndarray | None = None
    with torch.inference_mode():
        for members in batches(lengths, BATCH_TOKENS):
            rows = forward(collate([encoded[i] for i in members.tolist()])).float().cpu().numpy()
            if results is None:
                results = np.empty((len(encoded), *rows.shape[1:]), dtype=np.float64)
            results[members] = rows
    assert results is not None
    return results


def on(device: torch.device, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Move the batch to a device."""
    return {name: tensor.to(device) for name, tensor in batch.items()}


def near_edge(values: np.ndarray, step: float, slack: float) -> np.ndarray:
    """Return where a change of `slack` could round a value to another multiple of `step`."""
    return np.abs((values / step) % 1 - 0.5) * step <= slack


def near_tie(logits: np.ndarray, slack: float) -> np.ndarray:
    """Return the rows in which a change of `slack` in each logit could make another label win."""
    best = np.sort(logits, axis=1)
    close: np.ndarray = best[:, -1] - best[:, -2] <= 2 * slack
    return close


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the softmax of the rounded logits. The winner gets a quarter step more, so that rounding makes no tie."""
    settled = np.round(logits / STEP) * STEP
    settled[np.arange(len(logits)), logits.argmax(axis=1)] += STEP / 4
    powers = np.exp(settled - settled.max(axis=1, keepdims=True))
    shares: np.ndarray = np.round(powers / powers.sum(axis=1, keepdims=True), 12)
    return shares
