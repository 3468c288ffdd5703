"""Check a recipe against the limits of its data and model before anything runs."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal, cast

from tombola.attacks.in_the_loop import AttackAdversary
from tombola.attacks.resources import Resources
from tombola.augmentations import Augmentation
from tombola.augmentations.reach import unchanged_by, why_unchanged
from tombola.augmentations.synonyms import SynonymSwaps
from tombola.errors import RecipeError, TombolaError
from tombola.foundations.caching import cached_in_run
from tombola.models.safety import read_config
from tombola.objectives.distillation import Distill
from tombola.objectives.swaps import SwapAdversary
from tombola.pipeline.references import DataSource, ModelSource
from tombola.recipe.recipe import Recipe
from tombola.tasks import Task, kind_of
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

logger = logging.getLogger(__name__)

BY_HEAD = "remove `by: likelihood` from the task's settings, or this key from the recipe"
"""Advice for methods that need a classifier's logits."""


def check_limits(recipe: Recipe, model: ModelSource, data: DataSource) -> None:
    """Warn if texts exceed the model's positions, or a subset the data, and if augmentations do not apply.

    Augmentations leave texts unchanged if they do not know their script.

    Args:
        recipe: The recipe of one cell.
        model: Its model.
        data: Its training data.

    Raises:
        RecipeError: If a tracker is not installed.
    """
    checked: set[object] = set()
    for place, settings in recipe.trainings.items():
        if settings.report_to and settings.report_to not in checked:
            checked.add(settings.report_to)
            _require_trackers(place, settings.report_to)
        if settings.max_length not in checked:
            checked.add(settings.max_length)
            _compare_length(place, settings.max_length, model)
    augmented = {place: settings.augment for place, settings in recipe.trainings.items()}
    for place, augment in {"search": getattr(recipe.search, "augment", None), **augmented}.items():
        if augment is not None and augment.of not in checked:
            checked.add(augment.of)
            _compare_letters(place, augment.of, data)
    if recipe.data.train is not None and data.predicted_in is None:
        available("data.train", recipe.data.train, data.unmixed(), "used")


def why_fixed(task: Task) -> str | None:
    """Return why the texts of a task cannot be changed; None if they can."""
    kind = kind_of(task)
    if kind.reads_whole_texts:
        return None
    if not kind.label_logits:
        return f"{task.name} is scored by likelihood, with the answers as part of the texts"
    return f"{task.name} is a {task.kind} task, whose labels refer to tokens of the texts"


def check_texts(settings: TrainSettings, data: DataSource) -> None:
    """Raise if texts that labels point into would be changed, or if English synonyms meet another language."""
    task = data.definition
    if settings.augment is not None and (reason := why_fixed(task)):
        raise RecipeError(f"augment: {reason}, so the texts cannot be changed: leave out `augment`")
    changes = settings.augment.of if settings.augment is not None else ()
    if not task.english and any(isinstance(change, SynonymSwaps) for change in changes):
        raise RecipeError(
            f"augment: the built-in synonyms are English, but {task.name} is in {task.language!r}: use other "
            "augmentations, such as typos"
        )


def check_loss(settings: TrainSettings, data: DataSource) -> None:
    """Raise if the loss of a regression, the squared error, would ignore a setting."""
    task = data.definition
    if task.kind != "regression":
        return
    if getattr(settings.loss, "label_smoothing", None):
        raise RecipeError(
            f"loss.label_smoothing: {task.name} is a regression task, whose labels are numbers: leave it out"
        )
    if settings.distill is not None and settings.distill.temperature != Distill().temperature:
        raise RecipeError(
            f"distill.temperature: {task.name} is a regression task, whose outputs are numbers: leave it out"
        )


def check_attacked(settings: TrainSettings, data: DataSource) -> None:
    """Raise if an attack in the loop cannot run: it needs a head that predicts one label, and words of the language."""
    task = data.definition
    if isinstance(settings.adversary, AttackAdversary):
        require_single_label("adversary", task, "use freelb or pgd")
        Resources(language=task.language).require(settings.adversary.recipe)
    if isinstance(settings.adversary, SwapAdversary):
        _check_swaps(task)


def require_single_label(key: str, task: Task, advice: str) -> None:
    """Raise if the task cannot be attacked: that takes one label per text, predicted by a classification head."""
    if not task.single_label:
        raise RecipeError(
            f"{key}: {task.name} is a {task.kind} task, but attacks need a task with one label per text: {advice}"
        )
    if not kind_of(task).label_logits:
        raise RecipeError(
            f"{key}: {task.name} is scored by likelihood, but attacks need a classification head: {BY_HEAD}"
        )


def _check_swaps(task: Task) -> None:
    """Raise if words cannot be swapped: the neighbours are English, and no word may be a label or protected."""
    if reason := why_fixed(task):
        raise RecipeError(f"adversary: {reason}, so words cannot be swapped: use freelb or pgd")
    if not task.english:
        raise RecipeError(
            f"adversary: the built-in word neighbours are English, but {task.name} is in {task.language!r}: use freelb "
            "or pgd, or attack with deepwordbug"
        )
    if not task.all_attackable:
        raise RecipeError(
            f"adversary: swaps replaces words in all texts, but attacks may only change {', '.join(task.attackable)} "
            f"of {task.name}: use freelb or pgd, or attack with textfooler"
        )


@cached_in_run
def _compare_length(place: str, max_length: int, model: ModelSource) -> None:
    limit = _positions(model)
    if limit is not None and max_length > limit:
        logger.warning(
            "%s.max_length: %s tokens exceed the %s positions of %s: texts are truncated to %s",
            place, f"{max_length:,}", f"{limit:,}", model.name, f"{limit:,}",
        )  # fmt: skip


def _positions(model: ModelSource) -> int | None:
    """Return the number of positions in a model's config, or None."""
    from tombola.tasks import position_limit

    raw = read_config(Path(model.folder))
    config = SimpleNamespace(
        max_position_embeddings=raw.get("max_position_embeddings", raw.get("n_positions")),
        model_type=raw.get("model_type"),
        pad_token_id=raw.get("pad_token_id", 1),
    )
    return position_limit(cast("PreTrainedConfig", config))


@cached_in_run
def _compare_letters(place: str, of: tuple[Augmentation, ...], data: DataSource) -> None:
    split = data.load()
    if unchanged := unchanged_by(of, split):
        logger.warning("%s.augment: %s", place, why_unchanged(unchanged, split))


@cached_in_run
def available(key: str, wanted: int, data: DataSource, purpose: Literal["used", "attacked"]) -> int:
    """Return the number of examples, at most as many as wanted; warn if the data has fewer."""
    count = len(data.load())
    if count < wanted:
        logger.warning(
            "%s: %s examples were requested, but %s/%s has only %s: all of them are %s",
            key, f"{wanted:,}", data.definition.name, data.split, f"{count:,}", purpose,
        )  # fmt: skip
    return min(wanted, count)


@cached_in_run
def _require_trackers(place: str, names: tuple[str, ...]) -> None:
    from tombola.training.trackers import check_trackers

    try:
        check_trackers(names)
    except TombolaError as error:
        raise RecipeError(f"{place}.{error}") from None
