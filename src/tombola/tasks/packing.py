"""Documents as packed blocks of tokens, in which every token but the first is predicted from those before it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.encoding import CHUNK, TokenEncoded
from tombola.tasks.frame import Frame, token_ids
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

NO_DOCUMENT = -1
"""The document index of a token that separates documents."""


@dataclass(frozen=True, eq=False)
class Packed(TokenEncoded):
    """Concatenated documents, in blocks. The label of a position is the next token, −100 at a block's end.

    A block begins with the last token of the one before it, so that every token is a label exactly once. `documents`
    gives the document of each label; −1 for separators, which are learned but never scored.
    """

    documents: np.ndarray = field(kw_only=True)


def separators(tokenizer: "PreTrainedTokenizerBase") -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens before and after a document: the tokenizer's own, and its end-of-text token at the end."""
    runs = Frame(tokenizer, texts=1).runs
    first = next(place for place, run in enumerate(runs) if run.text is not None)
    before, after = (
        np.concatenate([np.empty(0, np.int32), *(run.ids for run in part)])
        for part in (runs[:first], runs[first + 1 :])
    )
    if tokenizer.eos_token_id is not None and tokenizer.eos_token_id not in after:
        after = np.append(after, np.int32(tokenizer.eos_token_id))
    if not len(before) + len(after):
        raise DataError(
            "The tokenizer has no end-of-text token to separate documents: set tokenizer.eos_token and save it again."
        )
    return before.astype(np.int32), after.astype(np.int32)


def pack_documents(
    split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int, block_size: int | None = None
) -> Packed:
    """Concatenate all documents and split them into blocks of `block_size` tokens, or `max_length`.

    No token is dropped: the last block may be shorter. The first document also follows a separator.
    """
    longest = min(max_length, tokenizer.model_max_length)
    size = block_size or longest
    if size > longest:
        raise DataError(
            f"{split.task.name}: block_size is {size}, but inputs have at most {longest} tokens: decrease it, or "
            "increase max_length if the model has more positions."
        )
    before, after = separators(tokenizer)
    pieces: list[np.ndarray] = [] if len(before) else [after[-1:]]
    owners: list[np.ndarray] = [np.full(len(piece), NO_DOCUMENT) for piece in pieces]
    texts = [text for (text,) in split.texts]
    for start in range(0, len(texts), CHUNK):
        for number, ids in enumerate(token_ids(tokenizer, texts[start : start + CHUNK]), start=start):
            for piece, document in ((before, NO_DOCUMENT), (ids, number), (after, NO_DOCUMENT)):
                pieces.append(piece)
                owners.append(np.full(len(piece), document))
    tokens, owner = np.concatenate(pieces), np.concatenate(owners).astype(np.int32)
    if (owner == NO_DOCUMENT).all():
        raise DataError(f"{split.task.name}/{split.name}: the documents contain no tokens.")
    return _blocks(tokens, owner, size)


def _blocks(tokens: np.ndarray, owner: np.ndarray, size: int) -> Packed:
    """Return blocks of `size` tokens that overlap by one: the last token of one is the first of the next."""
    starts = np.arange(0, len(tokens) - 1, size - 1)
    places = [np.arange(start, min(start + size, len(tokens))) for start in starts.tolist()]
    at = np.concatenate(places)
    offsets = np.cumsum([0, *(len(block) for block in places)])
    following = np.minimum(at + 1, len(tokens) - 1)
    labels, documents = tokens[following].astype(np.int64), owner[following].copy()
    last = offsets[1:] - 1
    labels[last], documents[last] = IGNORED, NO_DOCUMENT
    return Packed({"input_ids": tokens[at]}, offsets, labels, documents=documents)
