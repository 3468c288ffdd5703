"""The recipe and the task's texts of a ticket, or of a model shrunk or exported from one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.settings import checked
from tombola.models.loading import load_tokenizer
from tombola.models.safety import read_object
from tombola.pipeline.named_data import find_texts
from tombola.recipe.sections import DataSettings, EvaluateSettings
from tombola.shrink.texts import RandomTokens, TaskTexts, Texts
from tombola.tickets.saved import read_info, task_of
from tombola.tickets.ticket import TICKET
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PretrainedConfig

SHRINKAGE = "shrinkage.json"
"""The report in the folder of a shrunk ticket."""


EXPORTED = "export.json"
"""The metadata in the folder of an exported model."""


def recipe_of(folder: Path) -> dict[str, Any] | None:
    """Return the recipe of a ticket, or of a model shrunk or exported from one; None for other models.

    Args:
        folder: The folder of a ticket, of a shrunk or exported model, or of any model.
    """
    for name in (TICKET, EXPORTED):
        if (folder / name).is_file():
            return dict(read_info(folder / name, str(folder))["recipe"])
    if (folder / SHRINKAGE).is_file():
        recipe = read_object(folder / SHRINKAGE).get("recipe")
        return recipe if isinstance(recipe, dict) else None
    return None


def trained_length(recipe: Mapping[str, Any]) -> int:
    """Return the length that the model of a recipe was trained with: its retraining's, if it is a ticket that has one.

    Args:
        recipe: The recipe, which is not trusted to be valid; the loss may come from a plugin.
    """
    sections = [recipe.get("train"), recipe.get("retrain") if recipe.get("search") is not None else None]
    length = None
    for section in sections:
        length = section.get("max_length", length) if isinstance(section, Mapping) else length
    usual: int = TrainSettings.model_fields["max_length"].default
    return length if isinstance(length, int) and length > 0 else usual


def texts_of(folder: Path, config: PretrainedConfig) -> Texts:
    """Return texts that the model in a folder was evaluated on; if there are none, random tokens and the reason.

    Args:
        folder: The folder of a ticket, a shrunk ticket or any model.
        config: The model's config.
    """
    recipe = recipe_of(folder)
    if recipe is None:
        return RandomTokens.fitting(config, reason="the model's task is unknown")
    try:
        data = checked(DataSettings, recipe.get("data", {}), "data")
        evaluate = checked(EvaluateSettings, recipe.get("evaluate", {}), "evaluate")
        split = find_texts(data, task_of(recipe, folder), evaluate.on).load()
        return TaskTexts.of(split, load_tokenizer(folder), trained_length(recipe), config)
    except TombolaError as error:
        return RandomTokens.fitting(config, reason=f"no texts of the task: {str(error).rstrip('.')}")
