"""What trainings of weights and of gates have in common: their inputs, steps, data, batches and teacher."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.errors import RecipeError
from tombola.foundations.caching import shared
from tombola.foundations.hardware import Precision
from tombola.objectives.swaps import SWAPS, SwapAdversary
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import ModelStage
from tombola.pipeline.stages.bias import Bias
from tombola.pipeline.stages.defend import Defend, tokenizer_of
from tombola.pipeline.stages.teacher import Teacher
from tombola.store.stage import T, Workspace
from tombola.tasks import kind_of
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.pipeline.stages.search import SearchStage
    from tombola.pipeline.stages.train import Train
    from tombola.tasks import Collate, Encoded

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningStage(ModelStage[T]):
    """A stage that trains weights, gates or both on the task."""

    distributed: ClassVar = True

    model: ModelSource
    data: DataSource
    seed: int
    precision: Precision
    bias: Bias | None = None
    teacher: Teacher | None = None
    distill_from: ModelStage[Any] | ModelSource | None = None
    """The model that `distill` learns from."""
    attack_encoder: ModelSource | None = None
    """The encoder that gives an adversary its word neighbours, and with which an attack measures similarity."""
    neighbours: int | None = None
    """The version of the bundled table of word neighbours, if an adversary or an augmentation uses it."""
    swap_table: int | None = None
    """The version of the table of word swaps, if the adversary uses it."""
    defend: Defend | None = None
    """The defense that corrects the texts first."""


def whole_schedule(settings: TrainSettings, data: DataSource, processes: int = 1) -> int:
    """Return the optimizer steps of a whole training on the data, by this many processes together."""
    from tombola.training.schedule import total_steps

    inputs = shared(_estimated_inputs, settings, data)
    inputs = len(data.load()) if inputs is None else inputs
    return total_steps(settings, ceil(inputs / settings.batch_size), processes)


def planned_steps(settings: TrainSettings, data: DataSource, stop_at: float | None = None) -> int:
    """Return the optimizer steps of a training until it stops; raise if its schedule is impossible.

    For blocks of text and windows of contexts the number is an estimate until they are tokenised, so nothing is raised.
    """
    from tombola.training.schedule import check_schedule, last_step

    steps = shared(whole_schedule, settings, data)
    if settings.steps is None and shared(_estimated_inputs, settings, data) is not None:
        return steps if stop_at is None else min(steps, last_step(stop_at, max(steps, ceil(stop_at))))
    check_schedule(settings, steps, stop_at)
    return last_step(stop_at, steps) if steps else 0


def _estimated_inputs(settings: TrainSettings, data: DataSource) -> int | None:
    """Return about how many inputs an epoch has; None if as many as examples."""
    return kind_of(data.definition).estimate_inputs(data.load(), settings.max_length)


def training_data(stage: Train | SearchStage, space: Workspace, model: PreTrainedModel) -> Encoded:
    """Return the training data, with the bias model's and the teacher's predictions if the loss needs them."""
    from tombola.attacks.in_the_loop import AttackAdversary
    from tombola.attacks.neighbours import bundled_words
    from tombola.augmentations import Augmenter
    from tombola.augmentations.live import LiveTexts
    from tombola.tasks import Tagged, encode, fitting_length

    length = fitting_length(stage.train.max_length, model.config)
    tokenizer = tokenizer_of(stage.model, stage.defend, space)
    data = encode(stage.data.load(), tokenizer, length)
    if isinstance(data, Tagged) and data.cut:
        logger.warning(
            "%d words of the training data come after token %d and are not trained on", data.cut, length
        )
    augment = stage.train.augment
    if augment is not None or isinstance(stage.train.adversary, AttackAdversary):
        augmenter = Augmenter(augment, bundled_words(), stage.seed) if augment is not None else None
        data = LiveTexts.of(data, stage.data.load(), tokenizer, length, augmenter)
    if stage.bias is not None:
        data = data.with_extra("bias", space.read(stage.bias).numpy())
    if stage.teacher is not None:
        data = data.with_extra("teacher", space.read(stage.teacher).numpy())
    return data


def training_collate(stage: Train | SearchStage) -> Collate:
    """Return the collator of the training data, with the neighbours of each word if the adversary swaps words."""
    from tombola.attacks.swap_table import SwapTable
    from tombola.tasks import collate_of

    tokenizer, adversary = stage.model.tokenizer(), stage.train.adversary
    collate = collate_of(stage.data.definition, tokenizer, stage.seed)
    if not isinstance(adversary, SwapAdversary):
        return collate
    return collate.with_column(SWAPS, SwapTable(tokenizer, adversary).options_of)


def attackable_columns(stage: Train | SearchStage) -> dict[str, Any]:
    """Return, as further settings, the columns that a stage's attack in the loop may change, if not all of them."""
    from tombola.attacks.in_the_loop import AttackAdversary

    only = stage.data.attackable if isinstance(stage.train.adversary, AttackAdversary) else []
    return {"attackable": only} if only else {}


def distilling_teacher(stage: Train | SearchStage, space: Workspace) -> PreTrainedModel | None:
    """Return the model that `distill` learns from, if any; raise if it cannot read the stage's inputs."""
    from tombola.models.loading import TOKEN_TYPES, gives_token_types, load_tokenizer
    from tombola.tasks import fitting_length

    source, task = stage.distill_from, stage.data.definition
    if source is None:
        return None
    if isinstance(source, ModelSource):
        teacher, tokenizer, name = source.load_finetuned(task), source.tokenizer(), source.name
    else:
        teacher, tokenizer = source.load(space, task), load_tokenizer(space.open(source))
        name = source.name
    tokenizer_of_model = stage.model.tokenizer()
    if tokenizer.get_vocab() != tokenizer_of_model.get_vocab():
        raise RecipeError(
            f"distill.teacher: {name} has a different vocabulary from {stage.model.name}, but a teacher must read "
            "the same tokens as the model: use one with the same tokenizer"
        )
    if (
        len(task.text) > 1
        and getattr(teacher.config, "type_vocab_size", 0) > 1
        and gives_token_types(tokenizer)
        and not gives_token_types(tokenizer_of_model)
    ):
        raise RecipeError(
            f"distill.teacher: {name} distinguishes the two texts by {TOKEN_TYPES}, which the tokenizer of "
            f"{stage.model.name} does not produce: add them to model_input_names in its tokenizer_config.json, or "
            "use a teacher without them"
        )
    longest = fitting_length(stage.train.max_length, teacher.config)
    if longest < fitting_length(stage.train.max_length, stage.model.config()):
        raise RecipeError(
            f"distill.teacher: {name} reads {longest} tokens at most: set max_length to {longest} or less"
        )
    return teacher
