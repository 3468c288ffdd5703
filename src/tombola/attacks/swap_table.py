"""The tokens that may replace each token of a vocabulary, for training with word swaps."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tombola.attacks.neighbours import bundled_neighbours
from tombola.attacks.resources import TABLE_WIDTH
from tombola.errors import TombolaError
from tombola.foundations.lazy import lazy_module
from tombola.objectives.swaps import SwapAdversary
from tombola.words.lexicon import bundled

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase
else:
    torch = lazy_module("torch")

WORD_STARTS = ("Ġ", "▁")
"""What marks the first token of a word in byte-level and SentencePiece vocabularies; others mark the later ones."""
LATER = "##"
"""What marks the later tokens of a word in WordPiece vocabularies."""
UNFINISHED = "@@"
"""What marks all but the last token of a word in fastBPE vocabularies."""
APOSTROPHES = ("'", "’", "âĢĻ")
"""The apostrophes, the last one as byte-level vocabularies write it."""
NEGATIONS = tuple(f"{apostrophe}t" for apostrophe in APOSTROPHES)
"""The end of a negation such as `won't`, where it is one token."""
BEFORE = "a"
"""A word before each word that is looked up: many tokenizers treat the first word of a text differently."""


class SwapTable:
    """For each token that is a whole word, the tokens of its neighbours.

    Neighbours are among those that TextFooler tries: near in the bundled word vectors, of the same part of speech, no
    antonyms in WordNet, no stop words; of these, the ones that are a single token as well. So a swap changes no
    positions, and texts need not be tokenised again. Words are lower-case, so a vocabulary with capitals keeps its
    capitalised words, many of which are names.

    Args:
        tokenizer: The tokenizer of the model to train.
        settings: How many neighbours to keep, and how similar they must be.

    Raises:
        TombolaError: If no word of the vocabulary has a neighbour.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, settings: SwapAdversary) -> None:
        tokens, strings = _whole_words(tokenizer), _strings(tokenizer)
        self.options = torch.full((len(strings), settings.candidates), -1)
        for word, token in tokens.items():
            near = [tokens[other] for other in _similar_words(word, settings.min_cosine) if other in tokens]
            near = near[: settings.candidates]
            self.options[token, : len(near)] = torch.tensor(near, dtype=torch.long)
        if not self.options.ge(0).any():
            raise TombolaError(
                f"adversary: swaps needs English words that are single tokens, but of the {len(strings):,} tokens of "
                f"this vocabulary none has a neighbour with min_cosine {settings.min_cosine:g}: use freelb or pgd"
            )
        self.continues = torch.tensor(_continues(tokenizer, strings))
        self.unfinished = torch.tensor([word.endswith(UNFINISHED) for word in strings])
        self.apostrophe = torch.tensor([word.removeprefix(LATER) in APOSTROPHES for word in strings])
        self.t = torch.tensor([word.removeprefix(LATER) in ("t", "T") for word in strings])

    def options_of(self, ids: Tensor) -> Tensor:
        """Return the tokens that may replace each token of a batch; −1 where there is none.

        A part of a longer word has none, because the rest of the word would not fit: neither a token that later ones
        continue, nor `won` in `won't`, whose swap would remove the negation.
        """
        part = torch.zeros_like(ids, dtype=torch.bool)
        part[:, :-1] = self.continues[ids[:, 1:]]
        part[:, 1:] |= self.unfinished[ids[:, :-1]]
        part[:, :-2] |= self.apostrophe[ids[:, 1:-1]] & self.t[ids[:, 2:]]
        return self.options[ids].masked_fill(part[..., None], -1)


def _whole_words(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the token of each word of the neighbours that is one token inside a text."""
    words = bundled_neighbours().words
    before = tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    encoded = tokenizer([f"{BEFORE} {word}" for word in words], add_special_tokens=False)["input_ids"]
    unknown = tokenizer.unk_token_id
    return {
        word: ids[-1]
        for word, ids in zip(words, encoded, strict=True)
        if ids[:-1] == before and ids[-1] != unknown
    }


def _strings(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Return the tokens of the vocabulary by number; empty for numbers that it skips."""
    vocabulary = tokenizer.get_vocab()
    strings = [""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        strings[number] = token
    return strings


@lru_cache(maxsize=100_000)
def _similar_words(word: str, min_cosine: float) -> tuple[str, ...]:
    lexicon = bundled()
    if lexicon.is_stop_word(word):
        return ()
    near = bundled_neighbours().of(word, TABLE_WIDTH, min_cosine)
    return tuple(
        other
        for other in near
        if lexicon.same_part_of_speech(word, other) and not lexicon.is_stop_word(other)
    )


def _continues(tokenizer: PreTrainedTokenizerBase, strings: list[str]) -> list[bool]:
    """Return which tokens of the vocabulary continue the word before them."""
    marks_starts = any(token.startswith(WORD_STARTS) for token in strings)
    special = set(tokenizer.all_special_ids)

    def continues(number: int, token: str) -> bool:
        if not token or number in special:
            return False
        if marks_starts:
            return not token.startswith(WORD_STARTS) and (token[0].isalnum() or token.lower() in NEGATIONS)
        return token.startswith(LATER)

    return [continues(number, token) for number, token in enumerate(strings)]
