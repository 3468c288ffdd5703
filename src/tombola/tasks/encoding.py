"""Token ids of a split in flat arrays, and the collator that pads a batch to its own longest example."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from tombola.errors import DataError
from tombola.objectives import ANSWERABLE
from tombola.tasks.definition import IGNORED
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

CHUNK = 4096  # texts per tokenizer call: enough for its threads, little memory
POSITIONS_AFTER_PADDING = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet"}
"""The types of model that count positions from pad_token_id + 1."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """A tokenised split: one int32 array per model input over all tokens, with example i at offsets[i]:offsets[i+1]."""

    inputs: dict[str, np.ndarray]
    offsets: np.ndarray
    labels: np.ndarray
    extras: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> dict[str, Any]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"example {index} of {len(self)}")
        index %= len(self)
        tokens = slice(self.offsets[index], self.offsets[index + 1])
        example: dict[str, Any] = {name: values[tokens].tolist() for name, values in self.inputs.items()}
        example["labels"] = self.label(index)
        return example | {name: values[index].tolist() for name, values in self.extras.items()}

    def label(self, index: int) -> Any:
        """Return the target of an example: a class, a number, flags, or the first and last token of an answer."""
        return self.labels[index].tolist()

    @property
    def model_inputs(self) -> list[str]:
        """The tensors of a collated batch for the model's forward pass, without labels."""
        return [*self.inputs, "attention_mask"]

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each example."""
        return np.diff(self.offsets)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, for data that changes between epochs; does nothing here."""

    def with_extra(self, name: str, values: np.ndarray) -> "Encoded":
        """Return the data with another value or row per example, such as a bias model's log-probabilities."""
        if len(values) != len(self):
            raise DataError(f"{name!r} has {len(values)} rows for {len(self)} examples.")
        return replace(self, extras={**self.extras, name: np.asarray(values)})


@dataclass(frozen=True, eq=False)
class TokenEncoded(Encoded):
    """A tokenised split with a label for every token, −100 for tokens that are not predicted."""

    def label(self, index: int) -> Any:
        """Return the labels of the example's tokens."""
        return self.labels[self.offsets[index] : self.offsets[index + 1]].tolist()


def encode_texts(split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Encoded:
    """Tokenise a split. Longer inputs are truncated, the longer text of a pair first, but not padded."""
    pieces: dict[str, list[np.ndarray]] = {}
    lengths: list[int] = []
    for start in range(0, len(split), CHUNK):
        batch = tokenize_texts(split.texts[start : start + CHUNK], tokenizer, max_length)
        lengths += [len(ids) for ids in batch["input_ids"]]
        for name, rows in batch.items():
            pieces.setdefault(name, []).append(np.fromiter((t for row in rows for t in row), dtype=np.int32))
    if 0 in lengths:
        empty = split.ids[lengths.index(0)]
        raise DataError(
            f"{split.task.name}/{split.name}: there are no tokens in example {empty!r}: correct it, or remove it."
        )
    labels = np.asarray(split.labels, dtype=np.float32 if split.task.labels is None else np.int64)
    return Encoded(
        inputs={name: np.concatenate(arrays) for name, arrays in pieces.items()},
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        labels=labels,
    )


def tokenize_texts(
    texts: Sequence[tuple[str, ...]], tokenizer: "PreTrainedTokenizerBase", max_length: int
) -> Mapping[str, list[list[int]]]:
    """Return the model inputs for texts of one or two columns, truncated but not padded, one row per example."""
    columns = [list(column) for column in zip(*texts, strict=True)]
    limit = min(max_length, tokenizer.model_max_length)
    encoded: Mapping[str, list[list[int]]] = tokenizer(
        *columns, truncation="longest_first", max_length=limit, return_attention_mask=False
    )
    return encoded


class Collate:
    """Collates examples into tensors, padded to the longest on the right, whatever the tokenizer says.

    On the left, padding would move a text to other positions, and [CLS] away from the first. Only a [CLS] that ends
    texts, as XLNet's, must stay the last. Decoders without a padding token are padded with their end-of-text token,
    which the attention mask hides.
    """

    def __init__(
        self, tokenizer: "PreTrainedTokenizerBase", regression: bool = False, token_labels: bool = False
    ) -> None:
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if pad is None:
            raise DataError(
                "The tokenizer has neither a padding nor an end-of-text token; set tokenizer.pad_token."
            )
        self.pad_id: int = pad
        self.regression = regression
        self._pads_left = ends_with_cls(tokenizer)
        self._padding = {"input_ids": pad, "token_type_ids": tokenizer.pad_token_type_id, ANSWERABLE: 0}
        if token_labels:
            self._padding["labels"] = IGNORED
        self._columns: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}

    def with_column(self, name: str, column: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        """Add a column that is computed from the tokens of each batch, and return the collator."""
        self._columns[name] = column
        return self

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, for collators with randomness; does nothing here."""

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Return token tensors of shape (examples, longest), the attention mask, labels, and extras unchanged."""
        lengths = np.array([len(example["input_ids"]) for example in examples])
        longest = int(lengths.max())
        real = np.arange(longest) < lengths[:, None]
        if self._pads_left:
            real = real[:, ::-1]
        batch: dict[str, torch.Tensor] = {}
        for name in examples[0]:
            values = [example[name] for example in examples]
            if name in self._padding:
                grid = np.full(real.shape, self._padding[name], dtype=np.int64)
                grid[real] = np.concatenate(values)
                batch[name] = torch.from_numpy(grid)
            elif name == "labels":
                batch[name] = torch.tensor(values, dtype=torch.float32 if self.regression else torch.int64)
            else:
                batch[name] = torch.tensor(values)
        batch["attention_mask"] = torch.from_numpy(real.astype(np.int64))
        return batch | {name: column(batch["input_ids"]) for name, column in self._columns.items()}


def set_padding(config: "PreTrainedConfig", pad_id: int) -> None:
    """Set the token that batches are padded with, by which decoders with a classifier find the last token of a text.

    Models that count positions from their padding token keep it.
    """
    if config.pad_token_id is None or config.model_type not in POSITIONS_AFTER_PADDING:
        config.pad_token_id = pad_id


def ends_with_cls(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Return whether a tokenizer puts [CLS] after the text, where models like XLNet read the last position."""
    ids: list[int] = tokenizer("")["input_ids"]
    return ids[-1:] == [tokenizer.cls_token_id]


def position_limit(config: "PreTrainedConfig") -> int | None:
    """Return the longest input that a model has positions for; None if positions are not limited, XLNet's as −1."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions is None or positions < 1:
        return None
    return positions - (int(config.pad_token_id) + 1 if config.model_type in POSITIONS_AFTER_PADDING else 0)


def fitting_length(max_length: int, config: "PreTrainedConfig") -> int:
    """Return `max_length`, or the model's position limit if that is smaller."""
    return min(max_length, position_limit(config) or max_length)
