"""A tokenizer behind a defense: it corrects every text first, and saves the defense with itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tombola.defenses.base import DEFENSE, FittedDefense, load_defense
from tombola.errors import TombolaError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

T = TypeVar("T", bound="PreTrainedTokenizerBase")

REMEMBERED = 16_384
"""Number of cached corrections: attacks request the same texts again and again."""


class Behind:
    """Mixin for tokenizers behind a defense."""

    defense: FittedDefense
    _correct: Callable[[str], str]

    def __call__(self, text: Any = None, text_pair: Any = None, **options: Any) -> Any:
        """Correct the text or texts, then tokenise them."""
        if options.get("is_split_into_words"):
            raise TombolaError(
                "A defense corrects whole texts, and these are split into words: leave it out."
            )
        return super().__call__(self._corrected(text), self._corrected(text_pair), **options)  # type: ignore[misc]

    def save_pretrained(self, save_directory: Any, *arguments: Any, **options: Any) -> Any:
        """Save the tokenizer as usual, so that transformers can load it, and the defense next to it."""
        saved = super().save_pretrained(save_directory, *arguments, **options)  # type: ignore[misc]
        self.defense.save(Path(save_directory))
        return saved

    def _corrected(self, texts: Any) -> Any:
        if texts is None:
            return None
        return self._correct(texts) if isinstance(texts, str) else [self._corrected(text) for text in texts]


def defended(tokenizer: T, defense: FittedDefense) -> T:
    """Put a defense in front of a tokenizer, replacing any earlier one.

    The tokenizer is changed in place and returned. Every text passed to it is corrected first, in training,
    evaluation, attacks and serving; only the class's lower-level methods bypass the defense.
    """
    plain = undefended(tokenizer)
    remembered = lru_cache(maxsize=REMEMBERED)(defense.correct)
    parts = {"defense": defense, "_correct": staticmethod(remembered), "__module__": plain.__module__}
    tokenizer.__class__ = type(plain.__name__, (Behind, plain), parts)
    return tokenizer


def undefended(tokenizer: PreTrainedTokenizerBase) -> type[Any]:
    """Return a tokenizer's class without the defense."""
    kind = type(tokenizer)
    return kind.__mro__[kind.__mro__.index(Behind) + 1] if issubclass(kind, Behind) else kind


def defense_of(tokenizer: PreTrainedTokenizerBase) -> FittedDefense | None:
    """Return the defense in front of a tokenizer, if any."""
    return tokenizer.defense if isinstance(tokenizer, Behind) else None


def as_stored(tokenizer: T, folder: Path) -> T:
    """Put the defense of a folder, if any, in front of its tokenizer."""
    return defended(tokenizer, load_defense(folder)) if (folder / DEFENSE).is_file() else tokenizer
