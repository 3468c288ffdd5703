"""Open a finished classifier from a folder: its model, its task and its maximum length."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.foundations.settings import checked
from tombola.models.finding import find_folder
from tombola.models.loading import open_model
from tombola.recipe.sections import DataSettings
from tombola.tasks import Task
from tombola.tickets.multitask import MultiTaskTicket, is_multi_task, require_task
from tombola.tickets.saved import task_of
from tombola.tickets.texts import recipe_of, trained_length
from tombola.tickets.ticket import TICKET, Ticket
from tombola.training.multitask.model import task_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

MAX_LENGTH = 128
"""The maximum length for models whose training length is unknown."""
SPECIAL = 2
"""The tokens around a text; tokenizers do not truncate at all to fewer."""

Source = Ticket | MultiTaskTicket | str | Path


@dataclass(frozen=True)
class Opened:
    """A classifier, in PyTorch or onnxruntime, with its folder, task and maximum length."""

    folder: Path
    model: PreTrainedModel | Any
    task: str
    max_length: int
    settings: tuple[tuple[str, Any], ...] = ()
    """Settings of the task's kind that the model's recipe changes."""

    @property
    def definition(self) -> Task:
        """The task, with the recipe's settings."""
        return Task.named(self.task).with_settings(dict(self.settings))


def tasks_of(source: Source) -> list[str]:
    """Return the tasks of a multi-task ticket; an empty list for anything else.

    Args:
        source: A ticket, its folder or a hub id.
    """
    folder = folder_of(source)
    return MultiTaskTicket.from_pretrained(folder).tasks if is_multi_task(folder) else []


def open_classifier(
    source: Source, task: str | None, max_length: int | None, *, needs_task: bool = True
) -> Opened:
    """Open a fine-tuned classifier with 32-bit weights: a ticket, one task of one, a model folder or a hub id.

    A `.onnx` file is opened with the config, the tokenizer and the defense in its folder, and so is the ONNX file of a
    folder without other weights.

    Args:
        source: What to open.
        task: The model's task, if unknown; for a multi-task ticket, the task to open.
        max_length: Truncate texts to this many tokens; by default as in training.
        needs_task: Whether to raise an error if the task is unknown.
    """
    import torch

    from tombola.shrink.onnx_model import find_onnx, open_onnx

    if max_length is not None and max_length <= SPECIAL:
        raise TombolaError(
            f"max_length: must be greater than {SPECIAL}, since the special tokens count, not {max_length}"
        )
    folder = folder_of(source)
    file = Path(str(source)).expanduser() if is_onnx(source) else find_onnx(folder)
    if is_multi_task(folder):
        shared = MultiTaskTicket.from_pretrained(folder)
        name = require_task(shared, task)
        length = max_length or trained_length(shared.info["recipe"])
        named = task_of(shared.info["tasks"][name], task_folder(folder, name))
        opened = Opened(folder, shared.model(name), named, length)
        return _within_positions(opened, max_length)
    recipe = Ticket.from_pretrained(folder).recipe if (folder / TICKET).is_file() else recipe_of(folder)
    if task is None and recipe is not None:
        task = task_of(recipe, folder)
    if task is None and needs_task:
        raise TombolaError(f"{folder} is not a ticket, so its task is unknown: pass --task NAME")
    length = max_length or (trained_length(recipe) if recipe is not None else MAX_LENGTH)
    settings = _task_settings(recipe or {})
    if file is not None:
        return _within_positions(Opened(folder, open_onnx(file), task or "", length, settings), max_length)
    model = open_model(folder, dtype=torch.float32)
    if model.base_model is model:
        raise TombolaError(
            f"{folder} has no head: fine-tune it first, e.g. `tombola run bert_tickets/quick "
            f"{quote(f'model={folder}')}`, and use one of the resulting tickets"
        )
    return _within_positions(Opened(folder, model, task or "", length, settings), max_length)


def _task_settings(recipe: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    data = recipe.get("data")
    settings = data.get("task_settings") if isinstance(data, Mapping) else None
    known = checked(DataSettings, {"task_settings": settings or {}}, "data")
    return tuple(sorted(known.task_settings.items()))


def _within_positions(opened: Opened, max_length: int | None) -> Opened:
    """Warn if more tokens are requested than the model has positions; return the model unchanged."""
    from tombola.tasks import position_limit

    limit = position_limit(opened.model.config)
    if max_length is not None and limit is not None and max_length > limit:
        logger.warning(
            "max_length: %s tokens exceed the model's %s positions: texts are truncated to %s",
            f"{max_length:,}", f"{limit:,}", f"{limit:,}",
        )  # fmt: skip
    return opened


def is_onnx(source: Source) -> bool:
    """Return whether a source is an ONNX file.

    Args:
        source: What to open.
    """
    return isinstance(source, str | Path) and str(source).endswith(".onnx")


def folder_of(source: Source) -> Path:
    """Return the folder with the config and the tokenizer of a source.

    Args:
        source: A ticket, a folder, a hub id or an ONNX file.
    """
    if isinstance(source, Ticket | MultiTaskTicket):
        return source.folder
    if not is_onnx(source):
        return find_folder(str(source))
    file = Path(source).expanduser()
    if not file.is_file():
        raise TombolaError(f"there is no file {file}")
    if not (file.parent / "config.json").is_file():
        raise TombolaError(
            f"{file} has no config and no tokenizer beside it: export the model to a folder with `tombola export "
            "MODEL -o FOLDER`, and use that"
        )
    return find_folder(str(file.parent.absolute()))
