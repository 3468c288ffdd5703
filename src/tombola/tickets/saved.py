"""The base of single-task and multi-task tickets: a folder with its metadata."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tombola.errors import TombolaError
from tombola.foundations.checksums import write_checksums
from tombola.foundations.versions import versions
from tombola.models.finding import find_folder
from tombola.models.loading import load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FORMAT = 1
"""The version of the metadata format."""

CARD = "README.md"
"""The model card, which users may edit."""

TASK_FILE = "task.yaml"
"""The copy of the task file in the folder of a ticket, or of a model that was shrunk or exported from one."""


@dataclass(frozen=True)
class SavedTicket:
    """A folder with a model, its masks and a metadata file."""

    info_file: ClassVar[str]
    otherwise: ClassVar[str]
    """What to call a folder without that file, in the error message."""
    required: ClassVar[tuple[str, ...]]
    """Entries that the file must have."""

    folder: Path
    info: Mapping[str, Any] = field(repr=False)

    @classmethod
    def from_pretrained(cls, source: str | Path) -> Self:
        """Open a ticket.

        Args:
            source: A local folder or a hub id.
        """
        folder = find_folder(str(source))
        return cls(folder, read_info(folder / cls.info_file, f"{source} is {cls.otherwise}", cls.required))

    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Load the model's tokenizer."""
        return load_tokenizer(self.folder)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Save a copy of the ticket.

        Args:
            folder: The folder to copy it to; it must be empty or not exist, since files of another ticket that stay in
                it, such as its defense, would change this one.

        Returns:
            That folder.
        """
        from tombola.shrink.folders import written_whole

        folder = Path(folder)
        if folder.resolve() != self.folder.resolve():
            with written_whole(folder) as new:
                shutil.copytree(self.folder, new, dirs_exist_ok=True)
        return folder

    def push_to_hub(self, repo_id: str, private: bool | None = None, token: str | None = None) -> str:
        """Upload the folder to the hub, model card included.

        Args:
            repo_id: The repository on the hub, `OWNER/NAME`; it is created if it does not exist.
            private: Whether a new repository is private; by default the setting of the owner's account.
            token: The token to write with; by default the one you are logged in with.

        Returns:
            The URL of the commit.
        """
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(
            api.upload_folder(repo_id=repo_id, folder_path=self.folder, commit_message="Upload the ticket")
        )


def path_of(source: SavedTicket | str | Path) -> Path:
    """Return the path of a ticket, or of a file or folder.

    Args:
        source: A ticket, a multi-task ticket or a path.
    """
    return source.folder if isinstance(source, SavedTicket) else Path(source)


def task_of(about: Mapping[str, Any], folder: Path) -> str:
    """Return the task in a recipe, or in a part of a multi-task ticket.

    A relative task file is looked for beside the folder's parents first, of which one is the working directory of the
    run, since its data may be beside it. If there is none, as on another machine, the copy in the folder is returned.

    Args:
        about: The recipe, which is not trusted to be valid.
        folder: Its folder.
    """
    task = about.get("task")
    if not isinstance(task, str):
        raise TombolaError(f"{folder} does not record its task: pass --task NAME")
    if not is_task_file(task):
        return task
    path = Path(task).expanduser()
    places = [*(parent / path for parent in folder.absolute().parents), path, folder / TASK_FILE]
    return next((str(place) for place in places if place.is_file()), task)


def is_task_file(task: str) -> bool:
    """Return whether a recipe's task is a file.

    Args:
        task: The task's name or file.
    """
    return task.endswith((".yaml", ".yml"))


def task_file(task: str) -> dict[str, Path]:
    """Return the file of a recipe's task by the name of its copy; nothing if the task has no file.

    Args:
        task: The task's name or file.
    """
    path = Path(task).expanduser()
    return {TASK_FILE: path} if is_task_file(task) and path.is_file() else {}


def copy_task_file(source: Path, target: Path) -> None:
    """Copy the task file of a model's folder, if it has one, into the folder of a model made from it.

    Args:
        source: The model's folder.
        target: The folder of the other model.
    """
    if (source / TASK_FILE).is_file():
        shutil.copyfile(source / TASK_FILE, target / TASK_FILE)


def read_info(path: Path, otherwise: str, required: Sequence[str] = ("recipe",)) -> dict[str, Any]:
    """Read a ticket's metadata from the file next to its weights.

    Args:
        path: The file.
        otherwise: The start of the error message if it does not exist.
        required: Entries that must exist.
    """
    if not path.is_file():
        raise TombolaError(f"{otherwise}: it has no {path.name}")
    try:
        info: dict[str, Any] = json.loads(path.read_bytes())
        # Raises on infinite numbers and lone surrogates.
        json.dumps(info, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise TombolaError(
            f"{path} is not valid JSON ({str(error)[:200]}): copy or create it again"
        ) from None
    version = info.get("format") if isinstance(info, dict) else None
    if version != FORMAT:
        raise TombolaError(f"{path} has format {str(version)[:80]!r}; this version of tombola reads {FORMAT}")
    wrong = [name for name in required if not isinstance(info.get(name), dict)]
    if wrong:
        raise TombolaError(
            f"{path} does not describe a ticket: its {wrong[0]!r} is missing. Copy or create it again"
        )
    return info


def write_info(
    folder: Path, name: str, info: Mapping[str, Any], card: Callable[[Mapping[str, Any]], str]
) -> dict[str, Any]:
    """Write a ticket's metadata and model card next to its weights, and the checksums of all but the card.

    Args:
        folder: The ticket's folder.
        name: The name of the metadata file.
        info: The metadata.
        card: Returns the model card of the metadata.

    Returns:
        The metadata as written, with the format and the versions of the software.
    """
    full = {"format": FORMAT, **info, "versions": versions()}
    (folder / name).write_text(json.dumps(full, indent=1, allow_nan=False), encoding="utf-8")
    (folder / CARD).write_text(card(full), encoding="utf-8")
    write_checksums(folder, without=(CARD,))
    return full
