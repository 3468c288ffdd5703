"""Check which letters an augmentation can change: typos and look-alikes exist only for some scripts."""

from collections.abc import Iterable

from tombola.augmentations.base import Augmentation, spans_of
from tombola.foundations.choices import tag_of
from tombola.tasks import Split

SAMPLE = 500
"""The number of examples to check."""
MOST = 0.5
"""If more than this fraction of the letters is out of reach, texts count as unchanged."""


def unchanged_by(of: Iterable[Augmentation], split: Split) -> list[str]:
    """Return the augmentations that leave most words unchanged because the texts are in another script.

    Args:
        of: The augmentations.
        split: The texts.
    """
    kinds = list(dict.fromkeys(tag_of(type(augmentation)) for augmentation in of if augmentation.by_words))
    return kinds if kinds and _out_of_reach(split) > MOST else []


def why_unchanged(kinds: Iterable[str], split: Split) -> str:
    """Explain why augmentations leave texts unchanged, and what to do instead.

    Args:
        kinds: Their names.
        split: The texts.
    """
    names = list(kinds)
    return (
        f"{', '.join(names)} change{'s' if len(names) == 1 else ''} only Latin, Greek and Cyrillic letters, but "
        f"{_out_of_reach(split):.0%} of the letters in {split.task.name}/{split.name} are in other scripts; an "
        "attack during training, `adversary: {kind: attack, recipe: deepwordbug}`, misspells words of any script"
    )


def _out_of_reach(split: Split) -> float:
    """Return the fraction of letters outside the words that augmentations can change."""
    step = max(1, len(split) // SAMPLE)
    texts = [text for row in split.texts[::step] for text in row]
    letters = sum(_letters(text) for text in texts)
    reached = sum(_letters(text[slice(*span)]) for text in texts for span in spans_of(text))
    return 1 - reached / letters if letters else 0.0


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)
