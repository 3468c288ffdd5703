"""Passages as blocks of tokens, and the collator that hides some of them from a masked language model."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.encoding import CHUNK, Collate, Encoded
from tombola.tasks.frame import Frame, token_ids
from tombola.tasks.split import Split

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

RATE = 0.15  # of the tokens are to be predicted: of these 80 % are masked, 10 % another word, 10 % left


@dataclass(frozen=True, eq=False)
class Blocks(Encoded):
    """Packed text. `labels` has an entry per token: its id where it may be asked for, −100 at special tokens."""

    def label(self, index: int) -> Any:
        """The labels of the block's tokens."""
        return self.labels[self.offsets[index] : self.offsets[index + 1]].tolist()


def encode_passages(split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Blocks:
    """All passages one after another, cut into blocks of `max_length` tokens with special tokens around each.

    Nothing is left out: the last block may be shorter.
    """
    frame = Frame(tokenizer, texts=1)
    room = min(max_length, tokenizer.model_max_length) - frame.size
    if room < 1:
        raise DataError(f"Blocks of {max_length} tokens have no room beside their special tokens.")
    texts = [text for (text,) in split.texts]
    pieces = [
        ids for at in range(0, len(texts), CHUNK) for ids in token_ids(tokenizer, texts[at : at + CHUNK])
    ]
    tokens = np.concatenate(pieces)
    blocks = [frame.around(tokens[at : at + room]) for at in range(0, len(tokens), room)]
    inputs = {name: np.concatenate([block[name] for block in blocks]) for name in frame.names}
    special = np.isin(inputs["input_ids"], tokenizer.all_special_ids)
    if special.all():
        raise DataError(f"{split.task.name}/{split.name}: the tokenizer finds no word in the passages.")
    offsets = np.cumsum([0, *(len(block["input_ids"]) for block in blocks)])
    return Blocks(inputs, offsets, np.where(special, IGNORED, inputs["input_ids"]))


class MaskTokens(Collate):
    """Pads blocks and hides tokens of them: 15 %, and at least one of each block. (Devlin et al. 2019, §3.1)

    What is hidden is a pure function of seed, epoch and block. So an evaluation always asks for the same
    tokens, however it is batched, and a resumed training for those that it would have asked for.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", seed: int = 0) -> None:
        super().__init__(tokenizer)
        if tokenizer.mask_token_id is None:
            raise DataError("The tokenizer has no mask token: masked language modelling needs one.")
        self.mask_id: int = tokenizer.mask_token_id
        self.vocabulary = len(tokenizer)
        self.seed = seed
        self.epoch = 0
        self._padding["labels"] = IGNORED

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch: in each other tokens are hidden."""
        self.epoch = epoch

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, "torch.Tensor"]:
        """The padded blocks; labels are −100 but where a token is asked for."""
        return super().__call__([self._masked(example) for example in examples])

    def _masked(self, block: dict[str, Any]) -> dict[str, Any]:
        ids, labels = np.array(block["input_ids"]), np.array(block["labels"])
        content = int.from_bytes(blake2b(ids.tobytes(), digest_size=8).digest())
        rng = np.random.default_rng((self.seed, self.epoch, content))
        luck = np.where(labels == IGNORED, np.inf, rng.random(len(ids)))
        asked = (luck < RATE) | (np.isfinite(luck) & (luck == luck.min()))
        fate, words = rng.random(len(ids)), rng.integers(self.vocabulary, size=len(ids))
        hidden = np.where(fate < 0.8, self.mask_id, np.where(fate < 0.9, words, ids))
        return {
            **block,
            "input_ids": np.where(asked, hidden, ids),
            "labels": np.where(asked, labels, IGNORED),
        }
