"""Estimate how many inputs a split is encoded as, before its texts are tokenised."""

from typing import TYPE_CHECKING

from tombola.tasks.windows import context_starts

if TYPE_CHECKING:
    from tombola.tasks.split import Split

CHARACTERS = 4.5
"""Approximate characters per token."""
SPECIAL = 3
"""Special tokens around a question and its context, as in BERT."""


def estimate_blocks(split: "Split", size: int) -> int:
    """Return the approximate number of blocks of `size` tokens that all texts are packed into."""
    return max(1, round(sum(len(text) for texts in split.texts for text in texts) / CHARACTERS / size))


def estimate_windows(split: "Split", max_length: int, stride: int, longest: int) -> int:
    """Return the approximate number of windows that the contexts of all questions are read in."""
    free = max(2, max_length - SPECIAL)
    windows = 0
    for question, context in split.texts:
        room = free - min(_tokens(question), longest, free // 2)
        windows += len(context_starts(_tokens(context), room, stride))
    return windows


def _tokens(text: str) -> int:
    return round(len(text) / CHARACTERS)
