"""The multi-task ticket: one encoder, and a head, a mask and scores for each task.

`AutoModel` opens the folder as the encoder that all tasks share; `MultiTaskTicket` opens the model of a task.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ValidationError

from tombola.errors import TombolaError, UnknownName
from tombola.evaluation.scores import Score
from tombola.foundations.checksums import CHECKSUMS
from tombola.foundations.paths import replacing, require_empty
from tombola.foundations.quiet import quiet
from tombola.masks import MASK, Mask
from tombola.pipeline.stages.base import LOG, Drawn
from tombola.store.manifest import MANIFEST
from tombola.tickets.card import card, figures
from tombola.tickets.saved import TASK_FILE, SavedTicket, write_info
from tombola.tickets.ticket import Ticket, write_ticket
from tombola.training.multitask.model import open_task, task_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SHARE = "share.json"


class BaseInfo(BaseModel):
    """The model that a ticket was drawn from."""

    name: str
    fingerprint: str


class TaskInfo(BaseModel):
    """The metadata of one task of a ticket."""

    task: str
    mask: Drawn
    metrics: dict[str, dict[str, Score]]


class SharedInfo(BaseModel):
    """The metadata of a multi-task ticket."""

    base: BaseInfo
    tasks: dict[str, TaskInfo]
    precision: str
    recipe: dict[str, Any]
    provenance: dict[str, Any]


@dataclass(frozen=True)
class MultiTaskTicket(SavedTicket):
    """Several tasks that share an encoder, saved in a folder."""

    info_file: ClassVar[str] = SHARE
    otherwise: ClassVar[str] = "not a multi-task ticket"
    required: ClassVar[tuple[str, ...]] = ("tasks", "recipe")

    def __repr__(self) -> str:
        return f"MultiTaskTicket({str(self.folder)!r}): {', '.join(map(repr, self.tasks))}"

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Self:
        """Open a multi-task ticket.

        Args:
            source: A local folder or a hub id.
        """
        ticket = super().from_pretrained(source)
        try:
            SharedInfo.model_validate(ticket.info)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))[:200]
            raise TombolaError(
                f"{ticket.folder / SHARE}: {place}: {first['msg'].lower()}. Copy or create it again"
            ) from None
        return ticket

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks."""
        return list(self.info["tasks"])

    @property
    def metrics(self) -> dict[str, Any]:
        """The scores of each task under its mask, by data set and metric."""
        return {name: entry["metrics"] for name, entry in self.info["tasks"].items()}

    def mask(self, task: str) -> Mask:
        """Load the mask of a task.

        Args:
            task: The name of one of the tasks.
        """
        return Mask.load(task_folder(self.folder, task) / MASK)

    def model(self, task: str) -> PreTrainedModel:
        """Load one task as an ordinary classifier: the encoder under the task's mask, and the task's head.

        Args:
            task: The name of one of the tasks.
        """
        return open_task(self.folder, task)

    def cut(self, task: str, folder: str | Path) -> Ticket:
        """Write one task as an ordinary ticket, which can be evaluated, attacked, shrunk and exported.

        Args:
            task: The name of one of the tasks.
            folder: The folder to write; it must be empty or not exist.
        """
        folder, model = Path(folder), self.model(task)
        require_empty(folder)
        with TemporaryDirectory() as temporary, quiet():
            model.save_pretrained(temporary)
            self.tokenizer().save_pretrained(temporary)
            shutil.copyfile(task_folder(self.folder, task) / MASK, Path(temporary) / MASK)
            file = task_folder(self.folder, task) / TASK_FILE
            beside = {TASK_FILE: file} if file.is_file() else {}
            return write_ticket(folder, Path(temporary), Path(temporary), self.about(task), beside)

    def about(self, task: str) -> dict[str, Any]:
        """Return the metadata of one task, in the form of an ordinary ticket's.

        Args:
            task: The name of one of the tasks.
        """
        entry = self.info["tasks"][task]
        return {
            "base": self.info["base"],
            "mask": entry["mask"],
            "metrics": entry["metrics"],
            "precision": self.info["precision"],
            "recipe": {**self.info["recipe"], "task": entry["task"]},
            "provenance": self.info["provenance"],
        }


def is_multi_task(folder: Path) -> bool:
    """Return whether a folder is a multi-task ticket.

    Args:
        folder: The folder to look at.
    """
    return (folder / SHARE).is_file()


def require_task(ticket: MultiTaskTicket, task: str | None) -> str:
    """Return the task if the ticket has it; otherwise raise an error that lists its tasks.

    Args:
        ticket: The ticket.
        task: The requested task.
    """
    if task is None:
        tasks = ", ".join(ticket.tasks)
        raise TombolaError(f"{ticket.folder} is a multi-task ticket: pass --task, one of {tasks}")
    if task not in ticket.tasks:
        raise UnknownName("task", task, ticket.tasks, where=str(ticket.folder))
    return task


@contextmanager
def as_ticket(folder: Path, task: str | None) -> Iterator[Path]:
    """Yield the folder of an ordinary ticket: the given one, or a temporary one for a task of a multi-task ticket.

    Args:
        folder: The folder of a ticket or of a multi-task ticket.
        task: The task of a multi-task ticket.
    """
    if is_multi_task(folder):
        ticket = MultiTaskTicket.from_pretrained(folder)
        with TemporaryDirectory() as temporary:
            yield ticket.cut(require_task(ticket, task), Path(temporary) / "ticket").folder
        return
    if not (folder / MASK).is_file():
        raise TombolaError(
            f"{folder} is not a ticket: it has no {MASK}. `tombola run` writes tickets to runs/NAME/tickets"
        )
    if task is not None:
        raise TombolaError(f"{folder} is not a multi-task ticket: leave out --task")
    yield folder


def write_multi_task_ticket(
    folder: Path,
    model: Path,
    info: Mapping[str, Any],
    beside: Mapping[str, Mapping[str, Path]] = MappingProxyType({}),
) -> MultiTaskTicket:
    """Write a multi-task ticket from a finished shared training and its metadata.

    Args:
        folder: The ticket's folder; an existing ticket is replaced.
        model: The folder of the shared training.
        info: The metadata: base, tasks with their masks and metrics, recipe, provenance.
        beside: By task, further files to copy into its folder, by their new names.
    """
    with replacing(folder, SHARE) as new:
        shutil.copytree(
            model, new, ignore=shutil.ignore_patterns(MANIFEST, LOG, CHECKSUMS), dirs_exist_ok=True
        )
        for task, files in beside.items():
            for name, file in files.items():
                shutil.copyfile(file, task_folder(new, task) / name)
        return MultiTaskTicket(folder, write_info(new, SHARE, info, shared_card))


def shared_card(info: Mapping[str, Any]) -> str:
    """Return the model card of a multi-task ticket."""
    quoted = json.dumps(next(iter(info["tasks"])))
    return card(
        info,
        title=f"{len(info['tasks'])} tasks on one {info['base']['name']}",
        about=(
            "One encoder shared by several tasks, trained by Tombola. Every task has its own head and mask, and "
            "was trained and scored only with the units that its mask keeps."
        ),
        tag="multi-task",
        table=[
            ["task", "evaluated on", "metric", "score", "standard error", "examples", "weights removed"],
            *(
                [name, on, metric, *figures(score), f"{entry['mask']['weight_sparsity']:.1%}"]
                for name, entry in info["tasks"].items()
                for on, scores in entry["metrics"].items()
                for metric, score in scores.items()
            ),
        ],
        use=[
            "from tombola import MultiTaskTicket",
            "",
            'ticket = MultiTaskTicket.from_pretrained("path/or/hub-id")',
            f"model, tokenizer = ticket.model({quoted}), ticket.tokenizer()",
            f'ticket.cut({quoted}, "folder").shrink()  # one task as an ordinary, smaller ticket',
        ],
    )
