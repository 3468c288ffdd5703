"""Users' data files: supported formats, their task files, and advice for a data file in the wrong place."""

from pathlib import Path
from shlex import quote

from tombola.tasks.lines import ending_of

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
"""The formats of data files from which a task can be inferred."""


def task_file_of(data: Path) -> Path:
    """Return the path of a data file's task file, beside it."""
    stem = data.name.removesuffix(".gz")
    return data.with_name(f"{Path(stem).stem}.task.yaml")


def is_data_file(path: Path) -> bool:
    """Return whether a file can only be data. A .json file may be anything."""
    return ending_of(path) in ENDINGS and ending_of(path) != ".json"


def data_advice(path: Path) -> str:
    """Return advice for a data file, or any other file or folder, given in place of a recipe or a task.

    Args:
        path: The file.
    """
    if path.is_dir():
        return f"{path}: is a folder; use a task, a task file or a data file"
    if not path.is_file():
        return f"{path}: there is no such file"
    if ending_of(path) not in ENDINGS:
        return f"{path}: cannot read {path.suffix!r} files as a task; use {', '.join(ENDINGS)}, or a task file (.yaml)"
    task = task_file_of(path)
    if task.is_file():
        return f"{path}: is a data file; use its task file, {task}"
    word = quote(str(path))
    return (
        f"{path}: is a data file, neither a recipe nor a task file: `tombola task init {word}` writes a task file "
        f"for it, and `tombola compress MODEL {word}` reads it directly"
    )
