"""`tombola.evaluate`: score a ticket or any transformers classifier on data sets, outside of a recipe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.attacks import Attack, Resources
from tombola.attacks.report import AttackReport
from tombola.attacks.run import attack as attack_model
from tombola.errors import TombolaError
from tombola.evaluation import Score, evaluate_split
from tombola.models import find_model, load_tokenizer, open_model
from tombola.tasks import Task
from tombola.tasks.targets import find_target
from tombola.ticket import TICKET, Ticket
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)


def evaluate(
    model: Ticket | str | Path,
    on: Iterable[str] = ("validation",),
    *,
    task: str | None = None,
    data: Path | str | None = None,
    limit: int | None = None,
    max_length: int | None = None,
) -> dict[str, dict[str, Score]]:
    """Scores by data set and metric, each with its standard error.

    `on` names splits of the model's task (`validation`), other tasks (`hans`) or both (`reviews_tweets/test`).
    Texts are cut at `max_length` tokens: where it is not given, at the length that the ticket was trained with, or 128.
    """
    folder = model.folder if isinstance(model, Ticket) else find_model(str(model)).folder
    task = task or _task_of(folder)
    max_length = max_length or _length_of(folder)
    classifier, tokenizer = _with_head(folder), load_tokenizer(folder)
    scores = {}
    for target in on:
        name, split = find_target(target, task)
        loaded = Task.named(name).load(split, folder=Path(data) if data else None, limit=limit)
        found = evaluate_split(classifier, tokenizer, loaded, max_length=max_length)
        for note in found.notes:
            logger.warning("%s", note)
        scores[target] = found.scores
    return scores


def attack(
    model: Ticket | str | Path,
    recipe: str | Attack = "textfooler",
    *,
    task: str | None = None,
    split: str = "validation",
    n: int | None = None,
    seed: int = 0,
    query_budget: int | None = None,
    vectors: Path | str | None = None,
    mlm: str | None = None,
    data: Path | str | None = None,
    max_length: int | None = None,
    journal: Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> AttackReport:
    """Attack a ticket or a model's folder on a sample of its task; `tombola.attack` takes any model in memory."""
    folder = model.folder if isinstance(model, Ticket) else find_model(str(model)).folder
    task = task or _task_of(folder)
    examples = Task.named(task).load(split, folder=Path(data) if data else None)
    if journal is not None:
        journal.parent.mkdir(parents=True, exist_ok=True)
    return attack_model(
        _with_head(folder),
        load_tokenizer(folder),
        examples,
        recipe,
        n=n,
        seed=seed,
        query_budget=query_budget,
        resources=Resources(vectors=vectors, mlm=mlm),
        max_length=max_length or _length_of(folder),
        resume=journal,
        progress=progress,
    )


def _with_head(folder: Path) -> PreTrainedModel:
    """A finished model, which must have learned a task."""
    model = open_model(folder)
    if model.base_model is model:
        raise TombolaError(
            f"{folder} has no head: fine-tune it first, e.g. `tombola run quickstart model={folder}`, and name one of "
            "the tickets that come out"
        )
    return model


def _task_of(folder: Path) -> str:
    if not (folder / TICKET).is_file():
        raise TombolaError(f"{folder} is not a ticket, so its task must be said: --task NAME")
    return str(Ticket.from_pretrained(folder).recipe["task"])


def _length_of(folder: Path) -> int:
    """The length that texts were cut at when the ticket was trained."""
    if not (folder / TICKET).is_file():
        return 128
    train = TrainSettings(**Ticket.from_pretrained(folder).recipe.get("train", {}))
    return train.max_length
