"""Where a split's rows are: inside the package, beside the task's file, in the local data folder, on the hub."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.hub import NotOnHub, hub_table
from tombola.tasks.parse import Examples, parse
from tombola.tasks.passages import passage_table, without_blanks
from tombola.tasks.questions import question_table
from tombola.tasks.readers import DoesNotFit, Table, ending_of, open_table

if TYPE_CHECKING:
    from tombola.tasks.task import Task

BUNDLED = Path(__file__).parent / "bundled"
DATA_FOLDER = "TOMBOLA_DATA"


def find_examples(task: "Task", split: str, folder: Path | None) -> tuple[Examples, str]:
    """The split's examples and where they came from; DataError names every place when there are none."""
    source = task.source
    if source.bundled is not None:
        return _from_folder(task, split, BUNDLED / source.bundled)
    if source.folder is None and source.hub is None:
        return _from_folder(task, split, task.directory)

    looked: list[str] = []
    for place in _task_folders(task, folder):
        if _has_data(task, place):
            return _from_folder(task, split, place)
        looked.append(f"{place} (for {_wanted(task, split)})")
    if folder is None and DATA_FOLDER not in os.environ:
        looked.append(f"no local folder, as neither a folder nor {DATA_FOLDER} was given")
    if source.hub is not None:
        try:
            layout = Layout(drop_malformed=source.drop_malformed)
            return _examples(task, layout, hub_table(task, split)), f"hub {source.hub}"
        except NotOnHub as error:
            looked.append(f"the hub ({error})")
    raise DataError(f"No data for {task.name}/{split}. Looked in: {'; '.join(looked)}.")


def _task_folders(task: "Task", folder: Path | None) -> list[Path]:
    """The task's folder below the data folder, below a folder that is only the benchmark, or that folder itself."""
    if folder is not None and not folder.is_dir():
        raise DataError(f"The data folder {folder} does not exist.")
    root = folder or (Path(os.environ[DATA_FOLDER]) if os.environ.get(DATA_FOLDER) else None)
    if root is None:
        return []
    if not root.is_dir():
        raise DataError(f"The data folder {root} (from {DATA_FOLDER}) does not exist.")
    below = Path(task.source.folder) if task.source.folder is not None else Path()
    return list(dict.fromkeys([root / below, root / below.name, root]))


def _has_data(task: "Task", place: Path) -> bool:
    return any(_matches(place, layout, split) for layout in task.source.layouts for split in layout.files)


def _matches(place: Path, layout: Layout, split: str) -> list[Path]:
    """The split's file under the first of its names that exists (several files where the name has a `*`)."""
    for name in layout.files.get(split, []):
        found = sorted({*place.glob(name), *place.glob(f"{name}.gz")})
        if found:
            return found
    return []


def _from_folder(task: "Task", split: str, place: Path) -> tuple[Examples, str]:
    """The split from this folder, in the first layout that fits its file."""
    misfit: DoesNotFit | None = None
    for layout in task.source.layouts:
        files = _matches(place, layout, split)
        if len(files) > 1:
            raise DataError(
                f"{place}: several files for {task.name}/{split}: {', '.join(f.name for f in files)}."
            )
        try:
            if files:
                return _examples(task, layout, _open(task, files[0], layout)), str(files[0])
        except DoesNotFit as error:
            misfit = misfit or error
    if misfit is not None:
        raise misfit
    raise DataError(f"{place}: no file for {task.name}/{split} (looked for {_wanted(task, split)}).")


def _open(task: "Task", file: Path, layout: Layout) -> Table:
    """The file's rows, in the form that files of this kind of task have."""
    if task.kind == "question-answering" and ending_of(file) == ".json":
        return question_table(file)
    if task.kind == "masked-lm" and ending_of(file) not in (".tsv", ".csv", ".json", ".jsonl"):
        return passage_table(file)
    return open_table(file, layout)


def _examples(task: "Task", layout: Layout, table: Table) -> Examples:
    return parse(task, layout, without_blanks(table) if task.kind == "masked-lm" else table)


def _wanted(task: "Task", split: str) -> str:
    names = [name for layout in task.source.layouts for name in layout.files.get(split, [])]
    return ", ".join(dict.fromkeys(names))
