"""Users' data files: supported formats, their task files, and advice for a data file in the wrong place."""

from pathlib import Path
from shlex import quote

from tombola.errors import DataError
from tombola.tasks.lines import ending_of

ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
"""The formats of data files from which a task can be inferred."""
TRAIN = "train"
OTHER_SPLITS = {"validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
"""The names of files with the other splits, without their ending."""


def task_file_of(data: Path) -> Path:
    """Return the path of a data file's task file, next to it."""
    stem = data.name.removesuffix(".gz")
    return data.with_name(f"{Path(stem).stem}.task.yaml")


def train_file_of(folder: Path) -> Path:
    """Return the training data in a folder of splits: `train.csv`, or `train` in another format."""
    found = sorted(file for file in folder.glob("train.*") if is_train_file(file) and file.is_file())
    if len(found) != 1:
        reason = f"has {' and '.join(file.name for file in found)}" if found else "has no train.csv"
        raise DataError(f"{folder}: is a folder that {reason}: name a data file in it.")
    return found[0]


def is_train_file(data: Path) -> bool:
    """Return whether a file is the training split of a data set with a file per split."""
    return data.name.partition(".")[0].casefold() == TRAIN and ending_of(data) in ENDINGS


def splits_beside(data: Path) -> dict[str, Path]:
    """Return the files of the other splits next to a training file: `validation.csv` or `dev.csv`, `test.csv`."""
    if not is_train_file(data):
        return {}
    ending = data.name[len(TRAIN) :]
    found = {}
    for split, names in OTHER_SPLITS.items():
        if files := [file for name in names if (file := data.with_name(name + ending)).is_file()]:
            found[split] = files[0]
    return found


def task_name_of(data: Path, path: Path) -> str:
    """Return the name of a data file's task: that of its task file or, for `train.csv` and the like, of its folder."""
    name = path.name.removesuffix(path.suffix).removesuffix(".task")
    return (data.resolve().parent.name if name.casefold() == TRAIN else "") or name


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
