"""Opening a finished classifier from a folder: its model, its task, and the length that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import TombolaError
from tombola.models.finding import find_folder
from tombola.models.loading import open_model
from tombola.tickets.multitask import MultiTaskTicket, is_multi_task, require_task
from tombola.tickets.ticket import TICKET, Ticket
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MAX_LENGTH = 128
"""Where texts are cut for models that do not say."""

Source = Ticket | MultiTaskTicket | str | Path


@dataclass(frozen=True)
class Opened:
    """A classifier, and what is known about it."""

    folder: Path
    model: PreTrainedModel
    task: str
    max_length: int


def tasks_of(source: Source) -> list[str]:
    """The tasks of a multi-task ticket; none for anything else.

    Args:
        source: A ticket, its folder or a hub id.
    """
    folder = _folder(source)
    return MultiTaskTicket.from_pretrained(folder).tasks if is_multi_task(folder) else []


def open_classifier(
    source: Source, task: str | None, max_length: int | None, *, needs_task: bool = True
) -> Opened:
    """Open a ticket, one task of a multi-task ticket, a model folder or a hub id that has learned a task.

    Args:
        source: What to open.
        task: Its task, if it does not know; of a multi-task ticket, the one that is wanted.
        max_length: Where texts are cut, if not as in training.
        needs_task: Whether a model that does not know its task is refused.
    """
    folder = _folder(source)
    if is_multi_task(folder):
        shared = MultiTaskTicket.from_pretrained(folder)
        name = require_task(shared, task)
        length = max_length or _trained_length(shared.info["recipe"])
        return Opened(folder, shared.model(name), str(shared.info["tasks"][name]["task"]), length)
    ticket = Ticket.from_pretrained(folder) if (folder / TICKET).is_file() else None
    if task is None and ticket is not None:
        task = str(ticket.recipe["task"])
    if task is None and needs_task:
        raise TombolaError(f"{folder} is not a ticket and does not know its task: pass --task NAME")
    if max_length is None and ticket is not None:
        max_length = _trained_length(ticket.recipe)
    model = open_model(folder)
    if model.base_model is model:
        raise TombolaError(
            f"{folder} has no head: fine-tune it first, e.g. `tombola run bert_tickets/quick model={folder}`, and take "
            "one of the tickets that come out"
        )
    return Opened(folder, model, task or "", max_length or MAX_LENGTH)


def _folder(source: Source) -> Path:
    return source.folder if isinstance(source, Ticket | MultiTaskTicket) else find_folder(str(source))


def _trained_length(recipe: Mapping[str, Any]) -> int:
    train = recipe.get("train", {})  # not checked: its loss may be that of a plugin
    return int(train.get("max_length", TrainSettings.model_fields["max_length"].default))
