"""The special tokens that a tokenizer adds to its texts, so that texts can be cut and joined as token ids."""

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Run(NamedTuple):
    """A run of special tokens, or a placeholder for one of the texts (`text` is its index)."""

    text: int | None
    ids: np.ndarray
    types: np.ndarray


class Frame:
    """The special tokens around one text or two, learned by tokenising an example."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", texts: int) -> None:
        example = tokenizer(*["a"] * texts)
        self.names = [name for name in ("input_ids", "token_type_ids") if name in example]
        ids = np.array(example["input_ids"], dtype=np.int32)
        types = np.array(example.get("token_type_ids", np.zeros_like(ids)), dtype=np.int32)
        runs = groupby(range(len(ids)), key=example.sequence_ids(0).__getitem__)
        self.runs = [Run(text, ids[at := list(positions)], types[at]) for text, positions in runs]
        self.size = sum(len(run.ids) for run in self.runs if run.text is None)

    def around(self, *texts: np.ndarray) -> dict[str, np.ndarray]:
        """Return the model inputs for the token ids of the texts."""
        runs = [run if run.text is None else self._filled(run, texts[run.text]) for run in self.runs]
        columns = {"input_ids": [run.ids for run in runs], "token_type_ids": [run.types for run in runs]}
        return {name: np.concatenate(columns[name]) for name in self.names}

    def start(self, text: int, *lengths: int) -> int:
        """Return the token position where a text begins, given the lengths of the texts."""
        before = self.runs[: [run.text for run in self.runs].index(text)]
        return sum(len(run.ids) if run.text is None else lengths[run.text] for run in before)

    @staticmethod
    def _filled(run: Run, ids: np.ndarray) -> Run:
        return Run(run.text, ids, np.full(len(ids), run.types[0], dtype=np.int32))


def token_ids(tokenizer: "PreTrainedTokenizerBase", texts: list[str]) -> list[np.ndarray]:
    """Return the token ids of each text, without special tokens or truncation."""
    encoded = tokenizer(texts, add_special_tokens=False, verbose=False)
    return [np.array(ids, dtype=np.int32) for ids in encoded["input_ids"]]
