"""What trainings of weights and of gates read: how many steps they take, their data, and who teaches them."""

from __future__ import annotations

import logging
from math import ceil
from typing import TYPE_CHECKING

from tombola.errors import RecipeError
from tombola.foundations.caching import shared
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.defend import tokenizer_of
from tombola.store.stage import Workspace
from tombola.tasks import kind_of
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.pipeline.stages.search import Search
    from tombola.pipeline.stages.train import Train
    from tombola.tasks import Encoded

logger = logging.getLogger(__name__)

CHARACTERS = 4.5
"""Characters of a token, about, for estimates before a text is tokenised."""


def whole_schedule(settings: TrainSettings, data: DataSource, processes: int = 1) -> int:
    """Optimizer steps of a whole training on the data, by so many processes together."""
    from tombola.training.schedule import total_steps

    return total_steps(settings, ceil(shared(_examples, settings, data) / settings.batch_size), processes)


def planned_steps(settings: TrainSettings, data: DataSource, stop_at: float | None = None) -> int:
    """Optimizer steps that a training takes until it stops; a schedule that cannot be is refused.

    Of packed text the number is an estimate until the text is tokenised, so that nothing is refused by it.
    """
    from tombola.training.schedule import check_schedule, last_step

    whole = shared(whole_schedule, settings, data)
    if kind_of(data.definition).packs and settings.steps is None:
        return whole if stop_at is None else min(whole, last_step(stop_at, max(whole, ceil(stop_at))))
    check_schedule(settings, whole, stop_at)
    return last_step(stop_at, whole) if whole else 0


def _examples(settings: TrainSettings, data: DataSource) -> int:
    """Examples of an epoch; of packed text, about how many blocks it fills."""
    split, task = data.load(), data.definition
    if not kind_of(task).packs:
        return len(split)
    size = getattr(task.kind_settings, "block_size", None) or settings.max_length
    characters = sum(len(text) for texts in split.texts for text in texts)
    return max(1, round(characters / CHARACTERS / size))


def training_data(stage: Train | Search, space: Workspace, model: PreTrainedModel) -> Encoded:
    """The training data, with what the loss reads besides: a bias model's and a teacher's predictions."""
    from tombola.attacks.in_the_loop import AttackAdversary
    from tombola.augmentations import Augmenter, Resources
    from tombola.augmentations.live import LiveTexts
    from tombola.tasks import Tagged, encode, fitting_length
    from tombola.words.lexicon import bundled

    length = fitting_length(stage.train.max_length, model.config)
    tokenizer = tokenizer_of(stage.model, stage.defend, space)
    data = encode(stage.data.load(), tokenizer, length)
    if isinstance(data, Tagged) and data.cut:
        logger.warning(
            "%d words of the training data lie behind token %d and are not learned", data.cut, length
        )
    augment = stage.train.augment
    if augment is not None or isinstance(stage.train.adversary, AttackAdversary):
        augmenter = Augmenter(augment, Resources(bundled()), stage.seed) if augment is not None else None
        data = LiveTexts.of(data, stage.data.load(), tokenizer, length, augmenter)
    if stage.bias is not None:
        data = data.with_extra("bias", space.read(stage.bias).numpy())
    if stage.teacher is not None:
        data = data.with_extra("teacher", space.read(stage.teacher).numpy())
    return data


def distilling_teacher(stage: Train | Search, space: Workspace) -> PreTrainedModel | None:
    """The model that the stage's `distill` learns from, if it does; one that cannot read its inputs is refused."""
    from tombola.models.loading import load_tokenizer
    from tombola.tasks import fitting_length

    source, task = stage.distill_from, stage.data.definition
    if source is None:
        return None
    if isinstance(source, ModelSource):
        teacher, tokenizer, name = source.load_finetuned(task), source.tokenizer(), source.name
    else:
        teacher, tokenizer = source.load(space, task), load_tokenizer(space.open(source))
        name = source.name
    if tokenizer.get_vocab() != stage.model.tokenizer().get_vocab():
        raise RecipeError(
            f"distill.teacher: {name} has another vocabulary than {stage.model.name}; a teacher reads the same tokens "
            "as the model: name one with the same tokenizer"
        )
    longest = fitting_length(stage.train.max_length, teacher.config)
    if longest < fitting_length(stage.train.max_length, stage.model.config()):
        raise RecipeError(
            f"distill.teacher: {name} reads {longest} tokens at most: set max_length to {longest} or less"
        )
    return teacher
