"""Passages as blocks of tokens, and the collator that masks some tokens for a masked language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.encoding import CHUNK, Collate, TokenEncoded
from tombola.tasks.frame import Frame, token_ids
from tombola.tasks.split import Split

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

RATE = 0.15  # fraction of tokens to predict: of these 80 % are masked, 10 % replaced, 10 % unchanged


@dataclass(frozen=True, eq=False)
class Blocks(TokenEncoded):
    """Packed text. `labels` has an entry per token: its id if it may be predicted, −100 at special tokens."""


def encode_passages(
    split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int, block_size: int | None = None
) -> Blocks:
    """Concatenate all passages and split them into blocks of tokens, with special tokens around each.

    A block has `block_size` tokens, or `max_length`. No token is dropped: the last block may be shorter.
    """
    frame = Frame(tokenizer, texts=1)
    longest = min(max_length, tokenizer.model_max_length)
    if block_size is not None and block_size > longest:
        raise DataError(
            f"{split.task.name}: block_size is {block_size}, but inputs have at most {longest} tokens: decrease it, "
            "or increase max_length if the model has more positions."
        )
    size = block_size or longest
    room = size - frame.size
    if room < 1:
        raise DataError(
            f"Blocks of {size} tokens leave no room for text besides the special tokens: use longer ones."
        )
    texts = [text for (text,) in split.texts]
    pieces = [
        ids for at in range(0, len(texts), CHUNK) for ids in token_ids(tokenizer, texts[at : at + CHUNK])
    ]
    tokens = np.concatenate(pieces)
    blocks = [frame.around(tokens[at : at + room]) for at in range(0, len(tokens), room)]
    inputs = {name: np.concatenate([block[name] for block in blocks]) for name in frame.names}
    special = np.isin(inputs["input_ids"], tokenizer.all_special_ids)
    if special.all():
        raise DataError(f"{split.task.name}/{split.name}: the passages contain no tokens.")
    offsets = np.cumsum([0, *(len(block["input_ids"]) for block in blocks)])
    return Blocks(inputs, offsets, np.where(special, IGNORED, inputs["input_ids"]))


class MaskTokens(Collate):
    """Pads blocks and masks tokens in them, 15 % by default and at least one per block. (Devlin et al. 2019, §3.1)

    The masking is a pure function of seed, epoch and block. So an evaluation always predicts the same tokens, however
    it is batched, and a resumed training those that it would have predicted.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", seed: int = 0, rate: float = RATE) -> None:
        super().__init__(tokenizer, token_labels=True)
        if tokenizer.mask_token_id is None:
            raise DataError("The tokenizer has no mask token, which masked language modelling needs.")
        self.mask_id: int = tokenizer.mask_token_id
        self.vocabulary = len(tokenizer)
        self.seed = seed
        self.rate = rate
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, which determines the masked tokens."""
        self.epoch = epoch

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, "torch.Tensor"]:
        """Return the padded blocks; labels are −100 except at tokens to predict."""
        return super().__call__([self._masked(example) for example in examples])

    def _masked(self, block: dict[str, Any]) -> dict[str, Any]:
        ids, labels = np.array(block["input_ids"]), np.array(block["labels"])
        content = int.from_bytes(blake2b(ids.tobytes(), digest_size=8).digest())
        rng = np.random.default_rng((self.seed, self.epoch, content))
        luck = np.where(labels == IGNORED, np.inf, rng.random(len(ids)))
        masked = (luck < self.rate) | (np.isfinite(luck) & (luck == luck.min()))
        fate, words = rng.random(len(ids)), rng.integers(self.vocabulary, size=len(ids))
        hidden = np.where(fate < 0.8, self.mask_id, np.where(fate < 0.9, words, ids))
        return {
            **block,
            "input_ids": np.where(masked, hidden, ids),
            "labels": np.where(masked, labels, IGNORED),
        }
