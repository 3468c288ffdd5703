"""Tagged sentences as token ids: the tag of a word is the label of its first sub-word."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tombola.errors import DataError
from tombola.tasks.definition import IGNORED
from tombola.tasks.encoding import CHUNK, TokenEncoded
from tombola.tasks.frame import require_offsets
from tombola.tasks.split import Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, eq=False)
class Tagged(TokenEncoded):
    """Tokenised sentences. `words` gives the index of the word that each token begins, else −1.

    All other tokens have the label −100. `cut` counts the words after the last token.
    """

    words: np.ndarray = field(kw_only=True)
    cut: int = field(kw_only=True)

    def words_of(self, index: int) -> np.ndarray:
        """Return the indices of a sentence's words that have a label, in order."""
        words = self.words[self.offsets[index] : self.offsets[index + 1]]
        return words[words >= 0]


def encode_tagged(split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Tagged:
    """Tokenise a split of tagged sentences. Words are aligned by characters, so any fast tokenizer works.

    Sentences are truncated at `max_length`. A word without tokens has no label.
    """
    require_offsets(tokenizer, split.task)
    limit = min(max_length, tokenizer.model_max_length)
    pieces: dict[str, list[np.ndarray]] = {}
    lengths: list[int] = []
    words: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    lost = 0
    for start in range(0, len(split), CHUNK):
        texts = [text for (text,) in split.texts[start : start + CHUNK]]
        batch = tokenizer(
            texts, truncation=True, max_length=limit, return_attention_mask=False, return_offsets_mapping=True
        )
        for name in batch:
            if name != "offset_mapping":
                ids = (token for row in batch[name] for token in row)
                pieces.setdefault(name, []).append(np.fromiter(ids, dtype=np.int32))
        for number, (text, spans) in enumerate(zip(texts, batch["offset_mapping"], strict=True), start=start):
            first = _first_pieces(text, spans)
            if (first < 0).all():
                raise DataError(
                    f"{split.task.name}/{split.name}: no word of example {split.ids[number]!r} has a token within "
                    f"{limit} tokens."
                )
            tags = np.asarray(split.labels[number], dtype=np.int64)
            words.append(first)
            labels.append(np.where(first >= 0, tags[first], IGNORED))
            lengths.append(len(first))
            lost += len(tags) - 1 - int(first.max())
    return Tagged(
        inputs={name: np.concatenate(arrays) for name, arrays in pieces.items()},
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        labels=np.concatenate(labels),
        words=np.concatenate(words),
        cut=lost,
    )


def _first_pieces(text: str, spans: list[tuple[int, int]]) -> np.ndarray:
    """Return for each token the index of the word that it begins, else −1.

    A token belongs to the word of its last character, since some tokenizers include the preceding space.
    """
    owner = np.full(len(text) + 1, -1, dtype=np.int64)
    place = 0
    for number, word in enumerate(text.split(" ")):
        owner[place : place + len(word)] = number
        place += len(word) + 1
    ends = np.array([end if end > start else len(text) + 1 for start, end in spans], dtype=np.int64)
    of_token = np.where(ends <= len(text), owner[np.minimum(ends, len(text) + 1) - 1], -1)
    first = np.full(len(spans), -1, dtype=np.int64)
    found, positions = np.unique(of_token, return_index=True)
    first[positions] = found
    return first
