"""Which letters of texts an augmentation can change: slips and look-alikes are known for some scripts alone."""

from collections.abc import Iterable

from tombola.augmentations.base import Augmentation, spans_of
from tombola.foundations.choices import tag_of
from tombola.tasks import Split

SAMPLE = 500
"""Examples that are looked at."""
MOST = 0.5
"""Share of the letters that must be out of reach before texts count as left as they are."""


def unchanged_by(of: Iterable[Augmentation], split: Split) -> list[str]:
    """The augmentations that leave most words of the texts as they are, since these are in another script.

    Args:
        of: The augmentations.
        split: The texts.
    """
    kinds = list(dict.fromkeys(tag_of(type(one)) for one in of if one.by_words))
    return kinds if kinds and _out_of_reach(split) > MOST else []


def why_unchanged(kinds: Iterable[str], split: Split) -> str:
    """Why augmentations leave texts unchanged, and what to do instead.

    Args:
        kinds: Their names.
        split: The texts.
    """
    names = list(kinds)
    return (
        f"{', '.join(names)} change{'s' if len(names) == 1 else ''} Latin, Greek and Cyrillic letters alone, and "
        f"{_out_of_reach(split):.0%} of the letters in {split.task.name}/{split.name} are others; an attack in "
        "training, `adversary: {kind: attack, recipe: deepwordbug}`, misspells words of any script"
    )


def _out_of_reach(split: Split) -> float:
    """The share of the letters that are in no word that augmentations change."""
    step = max(1, len(split) // SAMPLE)
    texts = [text for row in split.texts[::step] for text in row]
    letters = sum(_letters(text) for text in texts)
    reached = sum(_letters(text[slice(*span)]) for text in texts for span in spans_of(text))
    return 1 - reached / letters if letters else 0.0


def _letters(text: str) -> int:
    return sum(character.isalpha() for character in text)
