"""The inputs that models are timed on: batches of a task's texts, or random tokens of one length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedModel

from tombola.defenses import FittedDefense
from tombola.defenses.tokenizing import defense_of
from tombola.shrink.inputs import padding_token, random_inputs
from tombola.tasks import Collate, Encoded, Split, collate_of, encode, fitting_length

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Batch = dict[str, Tensor]


class TextBatch(Batch):
    """A batch of texts corrected by a defense, which can repeat the correction for timing."""

    def __init__(self, inputs: Batch, texts: list[str], defense: FittedDefense) -> None:
        super().__init__(inputs)
        self.texts, self.defense = texts, defense

    def correct(self) -> None:
        """Correct the texts again with an empty cache."""
        self.defense.forget()
        for text in self.texts:
            self.defense.correct(text)


LENGTH = 128
"""The default number of tokens per text."""


@dataclass(frozen=True)
class RandomTokens:
    """Random tokens, all texts of the same length.

    Args:
        length: Tokens per text.
        reason: Why there are no texts of a task, shown to the user.
    """

    length: int
    reason: str = ""

    @classmethod
    def fitting(cls, config: PretrainedConfig, length: int = LENGTH, reason: str = "") -> RandomTokens:
        """Return texts of this length, or of the model's maximum length if that is smaller.

        Args:
            config: The model's config.
            length: Tokens per text.
            reason: Why there are no texts of a task.
        """
        return cls(fitting_length(length, config), reason)

    @property
    def about(self) -> str:
        """A description of these texts."""
        about = f"random tokens, {self.length} per text"
        return f"{about} ({self.reason})" if self.reason else about

    def batches(self, model: PreTrainedModel, size: int, count: int) -> list[Batch]:
        """Return a single batch: all batches would take the same time."""
        return [random_inputs(model, size, self.length)]

    def pad_id(self, config: PretrainedConfig) -> int:
        """Return the padding token."""
        return padding_token(config)


@dataclass(frozen=True, eq=False)
class TaskTexts:
    """Texts of a task at their real lengths, padded to the longest in each batch.

    Args:
        split: The texts with their labels.
        encoded: The tokenised texts.
        collate: Builds batches of them.
        defense: The defense that corrects the texts first; timings include it.
    """

    split: Split
    encoded: Encoded
    collate: Collate
    defense: FittedDefense | None = None

    @classmethod
    def of(
        cls, split: Split, tokenizer: PreTrainedTokenizerBase, max_length: int, config: PretrainedConfig
    ) -> TaskTexts:
        """Tokenise a split, truncated to `max_length` or to the model's last position.

        Args:
            split: The texts with their labels.
            tokenizer: The model's tokenizer.
            max_length: The maximum number of tokens.
            config: The model's config.
        """
        encoded = encode(split, tokenizer, fitting_length(max_length, config))
        return cls(split, encoded, collate_of(split.task, tokenizer), defense_of(tokenizer))

    @property
    def length(self) -> int:
        """Tokens per text, on average."""
        return round(float(self.encoded.lengths.mean()))

    @property
    def about(self) -> str:
        """A description of these texts."""
        source = f"{self.split.task.name}/{self.split.name}"
        about = f"{len(self.encoded)} texts of {source}, {self.length} tokens on average"
        return f"{about}, including their correction" if self.defense is not None else about

    def batches(self, model: PreTrainedModel, size: int, count: int) -> list[Batch]:
        """Return random batches, the same at every call. A text repeats only after all others have been used."""
        rng, texts = np.random.default_rng(0), len(self.encoded)
        order = np.concatenate([rng.permutation(texts) for _ in range(-(-size * count // texts))])
        return [self._batch(model, order[at * size : (at + 1) * size]) for at in range(count)]

    def in_order(self, model: PreTrainedModel, size: int) -> list[Batch]:
        """Return all texts in dataset order."""
        every = np.arange(len(self.encoded))
        return [self._batch(model, every[at : at + size]) for at in range(0, len(every), size)]

    def _batch(self, model: PreTrainedModel, members: np.ndarray) -> Batch:
        batch = self.collate([self.encoded[index] for index in members.tolist()])
        inputs = {name: batch[name].to(model.device) for name in self.encoded.model_inputs}
        if self.defense is None:
            return inputs
        texts = [text for index in members.tolist() for text in self.split.texts[index]]
        return TextBatch(inputs, texts, self.defense)

    def pad_id(self, config: PretrainedConfig) -> int:
        """Return the padding token."""
        return self.collate.pad_id


Texts = TaskTexts | RandomTokens
