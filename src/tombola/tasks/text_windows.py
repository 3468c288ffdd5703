"""Find texts that are longer than a model's input, and split them into windows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tombola.errors import DataError
from tombola.tasks.encoding import Encoded
from tombola.tasks.frame import Frame, token_ids
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class TextWindows(Encoded):
    """A tokenised split whose long texts are split into consecutive windows.

    `owner` is the index of each window's example. `weight` is the number of tokens that a window accounts for: a
    token in several windows counts for each in equal parts, so that every token counts once.
    """

    owner: np.ndarray = field(kw_only=True)
    weight: np.ndarray = field(kw_only=True)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the weighted mean over each example's windows: (windows, outputs) to (examples, outputs)."""
        count = int(self.owner[-1]) + 1
        sums = np.zeros((count, values.shape[1]), dtype=np.float64)
        np.add.at(sums, self.owner, values.astype(np.float64) * self.weight[:, None])
        means: np.ndarray = sums / np.bincount(self.owner, self.weight, count)[:, None]
        return means


def longer_texts(
    split: Split, tokenizer: "PreTrainedTokenizerBase", encoded: Encoded, limit: int
) -> list[int]:
    """Return the indices of the examples that were truncated to `limit` tokens.

    Args:
        split: The texts.
        tokenizer: The tokenizer.
        encoded: The truncated tokens.
        limit: The maximum number of tokens of an example.
    """
    suspects = np.flatnonzero(encoded.lengths == limit).tolist()
    longer = are_longer([split.texts[i] for i in suspects], tokenizer, limit)
    return [i for i, is_longer in zip(suspects, longer, strict=True) if is_longer]


def are_longer(
    texts: Sequence[tuple[str, ...]], tokenizer: "PreTrainedTokenizerBase", limit: int
) -> list[bool]:
    """Return whether each text, or pair of texts, has more than `limit` tokens.

    Args:
        texts: The texts, by column.
        tokenizer: The tokenizer.
        limit: The maximum number of tokens of an example.
    """
    if not texts:
        return []
    columns = [list(column) for column in zip(*texts, strict=True)]
    whole = tokenizer(*columns, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    return [len(ids) > limit for ids in whole]


def in_windows(
    split: Split,
    tokenizer: "PreTrainedTokenizerBase",
    encoded: Encoded,
    longer: list[int],
    limit: int,
    stride: int,
) -> TextWindows:
    """Return the split with windows replacing the truncated examples; the others are unchanged.

    Every window is full: the last one is moved back to end with the text. For a pair, the longer text is split into
    windows, each beside the other text, which is truncated to half of the room.

    Args:
        split: The texts.
        tokenizer: The tokenizer.
        encoded: The truncated tokens.
        longer: The truncated examples.
        limit: The maximum number of tokens of a window, including special tokens.
        stride: Tokens from the start of a window to that of the next.
    """
    frame = Frame(tokenizer, texts=len(split.task.text))
    free = limit - frame.size
    if free < len(split.task.text):
        raise DataError(
            f"{limit} tokens leave no room for text besides the special tokens: increase max_length."
        )
    texts = [
        token_ids(tokenizer, list(column)) for column in zip(*(split.texts[i] for i in longer), strict=True)
    ]
    cut = {
        i: _windows(frame, parts, free, stride)
        for i, parts in zip(longer, zip(*texts, strict=True), strict=True)
    }
    rows: list[dict[str, np.ndarray]] = []
    owner: list[int] = []
    weight: list[float] = []
    for number in range(len(encoded)):
        tokens = slice(encoded.offsets[number], encoded.offsets[number + 1])
        whole = {name: values[tokens] for name, values in encoded.inputs.items()}
        for row, share in cut.get(number, [(whole, 1.0)]):
            rows.append(row)
            owner.append(number)
            weight.append(share)
    return TextWindows(
        {name: np.concatenate([row[name] for row in rows]) for name in encoded.inputs},
        np.cumsum([0, *(len(row["input_ids"]) for row in rows)]),
        encoded.labels[owner],
        owner=np.array(owner),
        weight=np.array(weight),
    )


def _windows(
    frame: Frame, parts: tuple[np.ndarray, ...], free: int, stride: int
) -> list[tuple[dict[str, np.ndarray], float]]:
    """Return the inputs and the weight of each window of an example."""
    long = max(range(len(parts)), key=lambda place: len(parts[place]))
    others = [part if place == long else part[: free // 2] for place, part in enumerate(parts)]
    room = free - sum(len(part) for place, part in enumerate(others) if place != long)
    if stride > room:
        raise DataError(
            f"A stride of {stride} tokens would skip parts of a text: its windows have room for {room}; use at most "
            "that."
        )
    text = parts[long]
    starts = window_starts(len(text), room, stride)
    holders = np.zeros(len(text))
    for start in starts:
        holders[start : start + room] += 1
    windows: list[tuple[dict[str, np.ndarray], float]] = []
    for start in starts:
        window: Any = [
            text[start : start + room] if place == long else part for place, part in enumerate(others)
        ]
        windows.append((frame.around(*window), float((1 / holders[start : start + room]).sum())))
    return windows


def window_starts(length: int, room: int, stride: int) -> list[int]:
    """Return where windows begin: every `stride` tokens, with the last one ending with the text.

    Args:
        length: Tokens of the text, more than fit in a window.
        room: Tokens of a window.
        stride: Tokens from the start of a window to that of the next.
    """
    last = max(length - room, 0)
    return [*range(0, last, stride), last]
