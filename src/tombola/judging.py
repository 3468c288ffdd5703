"""`tombola.evaluate`: score a ticket or any transformers classifier on data sets, outside of a recipe."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.evaluation import Score, evaluate_split
from tombola.models import find_model, load_classifier, load_tokenizer
from tombola.stages.sources import find_target
from tombola.tasks import Task
from tombola.ticket import TICKET, Ticket

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def evaluate(
    model: Ticket | str | Path,
    on: Iterable[str] = ("validation",),
    *,
    task: str | None = None,
    data: Path | str | None = None,
    limit: int | None = None,
    max_length: int = 128,
) -> dict[str, dict[str, Score]]:
    """Scores by data set and metric, each with its standard error.

    `on` names splits of the model's task (`validation`), other tasks (`hans`) or both (`reviews_tweets/test`).
    """
    folder = model.folder if isinstance(model, Ticket) else find_model(str(model)).folder
    task = task or _task_of(folder)
    classifier, tokenizer = _load(folder, task), load_tokenizer(folder)
    scores = {}
    for target in on:
        name, split = find_target(target, task)
        loaded = Task.named(name).load(split, folder=Path(data) if data else None, limit=limit)
        scores[target] = evaluate_split(classifier, tokenizer, loaded, max_length=max_length).scores
    return scores


def _task_of(folder: Path) -> str:
    if not (folder / TICKET).is_file():
        raise TombolaError(f"{folder} is not a ticket, so its task must be said: --task NAME")
    return str(Ticket.from_pretrained(folder).recipe["task"])


def _load(folder: Path, task: str) -> PreTrainedModel:
    return load_classifier(folder, Task.named(task), seed=0)
