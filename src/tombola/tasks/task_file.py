"""Write readable task files, with a comment for every key and for optional keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import BaseModel

from tombola.errors import DataError
from tombola.foundations.checksums import write_whole
from tombola.foundations.yaml12 import dump_yaml
from tombola.tasks.definition import Source
from tombola.tasks.task import Task

FURTHER = """\
# To use separate files instead of a holdout, list them in source.files and delete their holdout:
#   files: {train: train.csv, validation: dev.csv, test: test.csv}
# For texts that are not English, set their language, since the built-in word lists are English: language: de
# Attacks change every text column, unless you restrict them: attackable: [second]
# All keys are in the reference, on the page "Task".
"""


def write_task_file(path: Path, content: dict[str, Any], notes: Sequence[str]) -> None:
    """Write a task file with a comment for each key.

    Args:
        path: The file.
        content: The content of the task.
        notes: The inferred facts, one per line, for the head of the file.
    """
    try:
        write_whole(path, task_file_text(path.name, content, notes))
    except OSError as error:
        raise DataError(
            f"{path}: the task file cannot be written ({error.strerror}): copy the data to a folder that you can write "
            "to."
        ) from None


def task_file_text(name: str, content: dict[str, Any], notes: Sequence[str]) -> str:
    """Return the text of a task file, with a comment for each key.

    Args:
        name: The name of the file.
        content: The content of the task.
        notes: The inferred facts, one per line, for the head of the file.
    """
    head = [
        "Inferred from the data. Correct what is wrong, then check it:",
        f"  tombola validate {quote(name)} --data",
    ]
    parts = ["".join(f"# {_printable(line)}\n" for line in (*head, "", *notes)).replace("# \n", "#\n")]
    for key, value in content.items():
        if key == "source":
            inner = "".join(_entry(Source, entry, part) for entry, part in value.items())
            parts.append(
                f"{_comment(Task, key)}source:\n" + "".join(f"  {line}\n" for line in inner.splitlines())
            )
        else:
            parts.append(_entry(Task, key, value))
    return "\n".join([*parts, FURTHER])


def _printable(text: str) -> str:
    """Return a text with its line breaks and control characters escaped: a comment may not contain them."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def _entry(kind: type[BaseModel], key: str, value: Any) -> str:
    text = dump_yaml({key: value}, default_flow_style=None, width=100)
    if text.startswith("{"):  # PyYAML writes a lone scalar pair in braces
        text = dump_yaml({key: value}, default_flow_style=False)
    return _comment(kind, key) + text


def _comment(kind: type[BaseModel], key: str) -> str:
    about = kind.model_fields[key].description
    return f"# {about}\n" if about else ""
