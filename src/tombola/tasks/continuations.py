"""Prompts with continuations as token ids, for a decoder's likelihood of an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.encoding import CHUNK, TokenEncoded
from tombola.tasks.frame import token_ids
from tombola.tasks.packing import separators

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Continuation(NamedTuple):
    """A prompt and one continuation, including the delimiter, with its example and choice."""

    example: int
    choice: int
    prompt: str
    text: str


@dataclass(frozen=True, eq=False)
class Continuations(TokenEncoded):
    """Prompts with continuations. The label of a position is the next token, within the continuation only.

    `examples` and `choices` give the example and the choice of each row.
    """

    examples: np.ndarray = field(kw_only=True)
    choices: np.ndarray = field(kw_only=True)


def encode_continuations(
    rows: Sequence[Continuation], tokenizer: "PreTrainedTokenizerBase", max_length: int
) -> Continuations:
    """Tokenise prompts with their continuations; inputs that are too long lose the beginning of the prompt.

    White space at the end of a prompt belongs to the continuation, since tokenizers join it with the next word.
    """
    before, after = separators(tokenizer)
    start = before if len(before) else after[-1:]
    limit = min(max_length, tokenizer.model_max_length)
    inputs: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for at in range(0, len(rows), CHUNK):
        chunk = rows[at : at + CHUNK]
        prompts = [row.prompt.rstrip() for row in chunk]
        whole = token_ids(tokenizer, [row.prompt + row.text for row in chunk])
        opening = token_ids(tokenizer, prompts)
        for row, tokens, prompt in zip(chunk, whole, opening, strict=True):
            if len(tokens) <= len(prompt):
                raise DataError(f"There are no tokens in the answer {row.text!r} to {row.prompt!r}.")
            lead = start if len(before) or not len(prompt) else start[:0]
            line = np.concatenate([lead, tokens])
            wanted = line[1:].astype(np.int64)
            wanted[: len(lead) + len(prompt) - 1] = IGNORED
            inputs.append(line[:-1][-limit:])
            labels.append(wanted[-limit:])
    return Continuations(
        {"input_ids": np.concatenate(inputs).astype(np.int32)},
        np.cumsum([0, *(len(ids) for ids in inputs)]),
        np.concatenate(labels),
        examples=np.array([row.example for row in rows]),
        choices=np.array([row.choice for row in rows]),
    )
