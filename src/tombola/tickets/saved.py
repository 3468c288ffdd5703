"""What tickets of one task and of several have in common: a folder, and what is known about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tombola.errors import TombolaError
from tombola.models.finding import find_folder
from tombola.models.loading import load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

FORMAT = 1
"""Of what is known about a ticket."""


@dataclass(frozen=True)
class SavedTicket:
    """A folder with a model, its masks, and a file that says what is known about them."""

    info_file: ClassVar[str]
    otherwise: ClassVar[str]
    """What a folder without that file is."""
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
        """The tokenizer that belongs to the model."""
        return load_tokenizer(self.folder)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Copy the ticket.

        Args:
            folder: The folder to copy it to.

        Returns:
            That folder.
        """
        folder = Path(folder)
        if folder.resolve() != self.folder.resolve():
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder

    def push_to_hub(self, repo_id: str, private: bool | None = None, token: str | None = None) -> str:
        """Publish the folder, model card included.

        Args:
            repo_id: The repository on the hub, `OWNER/NAME`; it is made if it does not exist.
            private: Whether a new repository is private; by default as the owner's account is set.
            token: The token to write with; by default the one that you are logged in with.

        Returns:
            The address of the commit.
        """
        from huggingface_hub import HfApi

        api = HfApi(token=token)
        api.create_repo(repo_id, private=private, exist_ok=True)
        return str(
            api.upload_folder(repo_id=repo_id, folder_path=self.folder, commit_message="Upload the ticket")
        )


def task_of(about: Mapping[str, Any], folder: Path) -> str:
    """The task that a recipe, or a part of a multi-task ticket, names.

    Args:
        about: The recipe, which anybody may have written.
        folder: The folder that it lies in, for messages.
    """
    task = about.get("task")
    if not isinstance(task, str):
        raise TombolaError(f"{folder} does not say what its task is: pass --task NAME")
    return task


def read_info(path: Path, otherwise: str, required: Sequence[str] = ("recipe",)) -> dict[str, Any]:
    """What is known about a ticket, from the file beside its weights.

    Args:
        path: The file.
        otherwise: How the sentence begins that says it is not there.
        required: Entries that must be there.
    """
    if not path.is_file():
        raise TombolaError(f"{otherwise}: it has no {path.name}")
    try:
        info: dict[str, Any] = json.loads(path.read_bytes())
        json.dumps(
            info, allow_nan=False, ensure_ascii=False
        ).encode()  # no infinite number, no half character
    except (ValueError, RecursionError) as error:
        raise TombolaError(f"{path} is not valid JSON ({str(error)[:200]}): copy or make it again") from None
    found = info.get("format") if isinstance(info, dict) else None
    if found != FORMAT:
        raise TombolaError(f"{path} has format {str(found)[:80]!r}; this version of tombola reads {FORMAT}")
    wrong = [name for name in required if not isinstance(info.get(name), dict)]
    if wrong:
        raise TombolaError(
            f"{path} is not about a ticket: its {wrong[0]!r} is missing. Copy or make it again"
        )
    return info
