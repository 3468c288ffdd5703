"""Augmentations: label-preserving, reproducible changes of training texts, made on the fly."""

from tombola.augmentations.augmenter import Augmenter, AugmentSettings
from tombola.augmentations.base import Augmentation, Resources, Synonyms, augmentations
from tombola.augmentations.homoglyphs import Homoglyphs
from tombola.augmentations.surface import Casing, Punctuation, Whitespace
from tombola.augmentations.synonyms import SynonymSwaps
from tombola.augmentations.typos import Typos

__all__ = [
    "AugmentSettings",
    "Augmentation",
    "Augmenter",
    "Casing",
    "Homoglyphs",
    "Punctuation",
    "Resources",
    "SynonymSwaps",
    "Synonyms",
    "Typos",
    "Whitespace",
    "augmentations",
]
