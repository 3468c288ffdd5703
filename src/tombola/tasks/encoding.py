"""Token ids of a split in flat arrays, and the collator that pads a batch to its own longest example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedTokenizerBase

CHUNK = 4096  # texts handed to the tokenizer at once: enough for its threads, little memory
POSITIONS_AFTER_PADDING = {
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "mpnet",
}  # positions count from pad_token_id + 1


@dataclass(frozen=True, eq=False)
class Encoded:
    """A tokenised split: per model input one int32 array over all tokens, with example i at offsets[i]:offsets[i+1]."""

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
        """What is to be found for an example: a class, a number, flags, or the first and last token of an answer."""
        return self.labels[index].tolist()

    @property
    def model_inputs(self) -> list[str]:
        """The tensors of a collated batch that go into the model's forward pass, labels aside."""
        return [*self.inputs, "attention_mask"]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example."""
        return np.diff(self.offsets)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of data that changes from one to the next; here nothing does."""

    def with_extra(self, name: str, values: np.ndarray) -> "Encoded":
        """The same data with one more value or row of values per example, such as a bias model's log-probabilities."""
        if len(values) != len(self):
            raise DataError(f"{name!r} has {len(values)} rows for {len(self)} examples.")
        return replace(self, extras={**self.extras, name: np.asarray(values)})


@dataclass(frozen=True, eq=False)
class TokenEncoded(Encoded):
    """A tokenised split with a label for every token, −100 where none is to be predicted."""

    def label(self, index: int) -> Any:
        """The labels of the example's tokens."""
        return self.labels[self.offsets[index] : self.offsets[index + 1]].tolist()


def encode_texts(split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Encoded:
    """Tokenise a split. Longer inputs are cut, the longer text of a pair first; nothing is padded here."""
    pieces: dict[str, list[np.ndarray]] = {}
    lengths: list[int] = []
    for start in range(0, len(split), CHUNK):
        batch = tokenize_texts(split.texts[start : start + CHUNK], tokenizer, max_length)
        lengths += [len(ids) for ids in batch["input_ids"]]
        for name, rows in batch.items():
            pieces.setdefault(name, []).append(np.fromiter((t for row in rows for t in row), dtype=np.int32))
    if 0 in lengths:
        empty = split.ids[lengths.index(0)]
        raise DataError(f"{split.task.name}/{split.name}: the tokenizer finds no token in example {empty!r}.")
    labels = np.asarray(split.labels, dtype=np.float32 if split.task.labels is None else np.int64)
    return Encoded(
        inputs={name: np.concatenate(arrays) for name, arrays in pieces.items()},
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        labels=labels,
    )


def tokenize_texts(
    texts: Sequence[tuple[str, ...]], tokenizer: "PreTrainedTokenizerBase", max_length: int
) -> Mapping[str, list[list[int]]]:
    """The model's inputs for texts of one or two columns, cut and not padded: a row of tokens for each example."""
    columns = [list(column) for column in zip(*texts, strict=True)]
    limit = min(max_length, tokenizer.model_max_length)
    found: Mapping[str, list[list[int]]] = tokenizer(
        *columns, truncation="longest_first", max_length=limit, return_attention_mask=False
    )
    return found


class Collate:
    """Examples to a batch of tensors, padded to the longest of them on the tokenizer's side by default.

    Decoders without a padding token are padded with their end-of-text token, which the attention mask hides.
    """

    def __init__(
        self,
        tokenizer: "PreTrainedTokenizerBase",
        regression: bool = False,
        padding_side: str | None = None,
        token_labels: bool = False,
    ) -> None:
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if pad is None:
            raise DataError(
                "The tokenizer has neither a padding nor an end-of-text token; set tokenizer.pad_token."
            )
        self.pad_id: int = pad
        self.regression = regression
        self.pads_left = (padding_side or tokenizer.padding_side) == "left"
        self._padding = {"input_ids": pad, "token_type_ids": tokenizer.pad_token_type_id}
        if token_labels:
            self._padding["labels"] = IGNORED

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of what a collator draws anew in each; here nothing is drawn."""

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Token tensors of shape (examples, longest), the attention mask, labels, and extras as they are."""
        lengths = np.array([len(example["input_ids"]) for example in examples])
        longest = int(lengths.max())
        real = np.arange(longest) < lengths[:, None]
        if self.pads_left:
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
        return batch


def position_limit(config: "PreTrainedConfig") -> int | None:
    """The longest input a model has positions for; None where positions are not counted."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions is None or config.model_type not in POSITIONS_AFTER_PADDING:
        return positions
    return positions - int(config.pad_token_id) - 1


def fitting_length(max_length: int, config: "PreTrainedConfig") -> int:
    """`max_length`, or the model's last position where that comes first."""
    return min(max_length, position_limit(config) or max_length)
