"""Opening a finished classifier from a folder: its model, its task, and the length that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.models.finding import find_folder
from tombola.models.loading import open_model
from tombola.tickets.ticket import TICKET, Ticket
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MAX_LENGTH = 128
"""Where texts are cut for models that do not say."""


@dataclass(frozen=True)
class Opened:
    """A classifier, and what is known about it."""

    folder: Path
    model: PreTrainedModel
    task: str
    max_length: int


def open_classifier(
    source: Ticket | str | Path, task: str | None, max_length: int | None, *, needs_task: bool = True
) -> Opened:
    """Open a ticket, a model folder or a hub id that has learned a task."""
    folder = source.folder if isinstance(source, Ticket) else find_folder(str(source))
    ticket = Ticket.from_pretrained(folder) if (folder / TICKET).is_file() else None
    if task is None and ticket is not None:
        task = str(ticket.recipe["task"])
    if task is None and needs_task:
        raise TombolaError(f"{folder} is not a ticket and does not know its task: pass --task NAME")
    if max_length is None and ticket is not None:
        train = ticket.recipe.get("train", {})  # not checked: its loss may be that of a plugin
        max_length = train.get("max_length", TrainSettings.model_fields["max_length"].default)
    model = open_model(folder)
    if model.base_model is model:
        raise TombolaError(
            f"{folder} has no head: fine-tune it first, e.g. `tombola run quickstart model={folder}`, and take one of "
            "the tickets that come out"
        )
    return Opened(folder, model, task or "", max_length or MAX_LENGTH)
