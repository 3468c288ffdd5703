"""A split with all its texts changed, for scoring units and evaluating models."""

import logging
from dataclasses import replace

from tombola.augmentations.augmenter import Augmenter, AugmentSettings
from tombola.augmentations.base import Augmentation, Resources, augmentations
from tombola.augmentations.reach import unchanged_by, why_unchanged
from tombola.augmentations.synonyms import SynonymSwaps
from tombola.errors import RecipeError, UnknownName
from tombola.tasks import Split, kind_of

logger = logging.getLogger(__name__)

SEED = 20
"""The seed of the changes in evaluation: `validation+typos` is the same data in every run."""


def augmented_copy(
    split: Split, augment: AugmentSettings, seed: int, where: str, resources: Resources
) -> Split:
    """Return the examples with all their texts changed, regardless of the share in the settings.

    Args:
        split: The examples.
        augment: The augmentation settings.
        seed: The seed of the changes.
        where: The recipe key, for the error message if the labels point into the texts.
        resources: The resources of the augmentations, such as a lexicon.
    """
    task = split.task
    if not kind_of(task).reads_whole_texts:
        raise RecipeError(f"{where}: {task.name} is a {task.kind} task, whose texts cannot be changed")
    if not task.english and any(isinstance(augmentation, SynonymSwaps) for augmentation in augment.of):
        raise RecipeError(
            f"{where}: the built-in synonyms are English, but {task.name} is in {task.language!r}: use another "
            "augmentation, such as typos"
        )
    augmenter = Augmenter(augment.of_every_text(), resources, seed)
    texts = [
        augmenter.texts(texts, identity, step=0)
        for texts, identity in zip(split.texts, split.ids, strict=True)
    ]
    return replace(split, texts=texts)


def changed_split(split: Split, change: str, resources: Resources) -> Split:
    """Return the split named by `validation+typos`: every text changed by an augmentation with default settings.

    Args:
        split: The unchanged examples.
        change: The name of an augmentation.
        resources: The resources of the augmentation.
    """
    if change not in augmentations:
        raise UnknownName(f"change of {split.name}", change, augmentations)
    settings = AugmentSettings(of=(Augmentation.choose(change),))
    where = f"evaluate.on: {split.name}+{change}"
    changed = augmented_copy(split, settings, SEED, where, resources)
    if unchanged := unchanged_by(settings.of, split):
        logger.warning("%s: %s", where, why_unchanged(unchanged, split))
    return replace(changed, name=f"{split.name}+{change}")
