"""The special tokens that a tokenizer adds to its texts, so that texts can be cut and joined as token ids."""

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tombola.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.task import Task

EXAMPLE = "a"


class Run(NamedTuple):
    """A run of special tokens, or a placeholder for one of the texts (`text` is its index)."""

    text: int | None
    ids: np.ndarray
    types: np.ndarray


class Frame:
    """The special tokens around one text or two, learned by tokenising an example."""

    def __init__(self, tokenizer: "PreTrainedTokenizerBase", texts: int) -> None:
        example = tokenizer(*[EXAMPLE] * texts)
        self.names = [name for name in ("input_ids", "token_type_ids") if name in example]
        ids = np.array(example["input_ids"], dtype=np.int32)
        types = np.array(example.get("token_type_ids", np.zeros_like(ids)), dtype=np.int32)
        owners = _owners(ids.tolist(), token_ids(tokenizer, [EXAMPLE])[0].tolist(), texts)
        runs = groupby(range(len(ids)), key=owners.__getitem__)
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


def _owners(ids: list[int], text: list[int], texts: int) -> list[int | None]:
    """Return the index of the text that each token belongs to, None for special tokens, if all texts are the same.

    Fast tokenizers could tell, but those written in Python cannot.
    """
    owners: list[int | None] = [None] * len(ids)
    end = 0
    for number in range(texts):
        start = next(place for place in range(end, len(ids)) if ids[place : place + len(text)] == text)
        end = start + len(text)
        owners[start:end] = [number] * len(text)
    return owners


def require_offsets(tokenizer: "PreTrainedTokenizerBase", task: "Task") -> None:
    """Raise an error if a tokenizer does not tell which characters each token stands for."""
    if not tokenizer.is_fast:
        raise DataError(
            f"{task.name}: a {task.kind} task needs a fast tokenizer, which tells the characters of each token, but "
            f"this model's ({type(tokenizer).__name__}) is not one: choose another model."
        )


def token_ids(tokenizer: "PreTrainedTokenizerBase", texts: list[str]) -> list[np.ndarray]:
    """Return the token ids of each text, without special tokens or truncation."""
    encoded = tokenizer(texts, add_special_tokens=False, verbose=False)
    return [np.array(ids, dtype=np.int32) for ids in encoded["input_ids"]]
