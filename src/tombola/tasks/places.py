"""Find a split's rows: in the package, next to the task file, in the local data folder, or on the hub."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import DataError
from tombola.tasks.definition import Layout
from tombola.tasks.hub import NotOnHub, hub_table
from tombola.tasks.kinds import kind_of
from tombola.tasks.lines import encoding_of_new
from tombola.tasks.parse import Examples, parse
from tombola.tasks.readers import DoesNotFit, Table

if TYPE_CHECKING:
    from tombola.tasks.task import Task

logger = logging.getLogger(__name__)

BUNDLED = Path(__file__).parent / "bundled"
DATA_FOLDER = "TOMBOLA_DATA"
ADVICE = (
    f" Copy the data next to the task file, or set its folder: {DATA_FOLDER}, or data.folder in a recipe."
)


def find_examples(task: "Task", split: str, folder: Path | None) -> tuple[Examples, str]:
    """Return the split's examples and their source; DataError lists every place searched if there are none."""
    source = task.source
    if source.bundled is not None:
        return _from_folder(task, split, BUNDLED / source.bundled)
    if source.folder is None and source.hub is None:
        return _from_folder(task, split, _own_folder(task, folder), ADVICE)

    looked: list[str] = []
    for place in _task_folders(task, folder):
        if _has_data(task, place):
            return _from_folder(task, split, place)
        looked.append(f"{place} (for {_wanted(task, split)})")
    if folder is None and DATA_FOLDER not in os.environ:
        looked.append(f"no local folder, since neither data.folder nor {DATA_FOLDER} is set")
    if source.hub is not None:
        try:
            layout = Layout(
                drop_malformed=source.drop_malformed,
                map=source.hub_map,
                skip_labels=[*source.skip_labels, "-1"] if source.skip_labels else [],
                separator=source.separator,
                tag_scheme=source.tag_scheme,
            )
            return parse(task, layout, hub_table(task, split)), f"hub {source.hub}"
        except NotOnHub as error:
            looked.append(f"the hub ({error})")
    raise DataError(
        f"No data for {task.name}/{split}. Looked in: {'; '.join(looked)}. Set {DATA_FOLDER} to the folder of the data."
    )


def _own_folder(task: "Task", folder: Path | None) -> Path:
    """Return the folder of the task file, or the data folder if the files are not there, as for a copied task file."""
    if _has_data(task, task.directory):
        return task.directory
    places = _task_folders(task, folder)
    named = places[-1] if folder is not None else task.directory
    return next((place for place in places if _has_data(task, place)), named)


def _task_folders(task: "Task", folder: Path | None) -> list[Path]:
    """Return the task's folder below the data folder, below the benchmark's folder, or that folder itself."""
    if folder is not None and not folder.is_dir():
        raise DataError(
            f"The data folder {folder} does not exist: pass the folder that contains your data sets."
        )
    root = folder or (Path(os.environ[DATA_FOLDER]) if os.environ.get(DATA_FOLDER) else None)
    if root is None:
        return []
    if not root.is_dir():
        raise DataError(f"The data folder {root} does not exist: correct or unset {DATA_FOLDER}.")
    below = Path(task.source.folder) if task.source.folder is not None else Path()
    return list(dict.fromkeys([root / below, root / below.name, root]))


def _has_data(task: "Task", place: Path) -> bool:
    return any(_matches(place, layout, split) for layout in task.source.layouts for split in layout.files)


def _matches(place: Path, layout: Layout, split: str) -> list[Path]:
    """Return the split's file under the first existing name (several files if the name has a `*`)."""
    for name in layout.files.get(split, []):
        files = sorted({*place.glob(name), *place.glob(f"{name}.gz")})
        if files:
            return files
    return []


def _from_folder(task: "Task", split: str, place: Path, advice: str = "") -> tuple[Examples, str]:
    """Read the split from this folder, in the first layout that fits its file; `advice` ends the error if none does."""
    misfit: DoesNotFit | None = None
    for layout in task.source.layouts:
        files = _matches(place, layout, split)
        if len(files) > 1:
            raise DataError(
                f"{place}: several files for {task.name}/{split}: {', '.join(f.name for f in files)}: "
                "keep one of them."
            )
        try:
            if files:
                table = kind_of(task).open(task, files[0], layout)
                return parse(task, layout, table), str(files[0])
        except DoesNotFit as error:
            misfit = misfit or error
    if misfit is not None:
        raise misfit
    splits = [
        name
        for name in task.source.files
        if any(_matches(place, layout, name) for layout in task.source.layouts)
    ]
    others = f" There is {' and '.join(f'{task.name}/{name}' for name in splits)}." if splits else advice
    raise DataError(f"{place}: no file for {task.name}/{split} (looked for {_wanted(task, split)}).{others}")


def open_unlabelled(task: "Task", file: Path) -> tuple[Examples, Table]:
    """Read the texts of a file without labels, such as GLUE's test sets, in the first layout that fits.

    Test files may have a header where training files do not, so each layout is also tried with one. New texts may come
    from another program than the training data, so UTF-8 and the usual delimiter are recognised too.

    Returns:
        The examples, and the table with the row of each.
    """
    if not file.exists():
        raise DataError(f"{file}: there is no such file.")
    misfit: DoesNotFit | None = None
    for layout in task.source.layouts:
        encoding = encoding_of_new(file, layout.encoding)
        layout = layout.model_copy(update={"drop_malformed": False, "numbered": True, "encoding": encoding})
        tried = [layout.model_copy(update={"header": None}), layout] if layout.header else [layout]
        tried += [one.model_copy(update={"delimiter": None}) for one in tried if one.delimiter]
        for one in tried:
            try:
                table = kind_of(task).open(task, file, one)
                rows = list(table.rows)
                examples = parse(task, one, table._replace(rows=iter(rows)), labelled=False)
            except DoesNotFit as error:
                misfit = misfit or error
                continue
            _check_texts(file, examples)
            return examples, table._replace(rows=iter(rows))
    assert misfit is not None
    raise misfit


def _check_texts(file: Path, examples: Examples) -> None:
    """Raise an error if all texts are empty, and warn if some are: a model predicts something for them too."""
    empty = sum(not any(text.strip() for text in texts) for texts in examples.texts)
    if empty == len(examples.texts):
        raise DataError(f"{file}: the text is empty in every row: check the text column.")
    if empty:
        logger.warning(
            "%s: %s, so the prediction for %s is meaningless",
            file,
            "1 row has an empty text" if empty == 1 else f"{empty:,} rows have an empty text",
            "it" if empty == 1 else "them",
        )


def find_test_file(task: "Task", name: str, folder: Path | None) -> Path:
    """Return a benchmark file that is not a split of the task, such as GLUE's test sets, next to the task's data."""
    places = [root / part for root in _task_folders(task, folder) for part in (".", "../diagnostic", "../AX")]
    for place in places:
        if (place / name).is_file():
            return place / name
    if not places:
        raise DataError(
            f"No {name} for {task.name}: set the folder of the benchmark with --data or {DATA_FOLDER}."
        )
    looked = ", ".join(str(path) for path in _task_folders(task, folder))
    raise DataError(f"No {name} for {task.name}. Looked in: {looked}.")


def _wanted(task: "Task", split: str) -> str:
    names = [name for layout in task.source.layouts for name in layout.files.get(split, [])]
    return ", ".join(dict.fromkeys(names))
