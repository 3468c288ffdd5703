"""More texts for a compression: the original labels them, and the ticket is trained on its answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.pipeline.stages.label import Label, write_labelled
from tombola.recipe.reading import Raw
from tombola.tasks import Split, Task
from tombola.tasks.without_labels import new_texts
from tombola.training.settings import TrainSettings

OPTION = "--unlabelled"


def label_stage(raw: Raw, file: str) -> Label:
    """Return the stage in which the recipe's model, a fine-tuned classifier, labels the texts of a file.

    Args:
        raw: The recipe of a compression.
        file: A file in one of the layouts of the task's files, or a .txt file with one text per line.
    """
    length = raw["train"].get("max_length", TrainSettings.model_fields["max_length"].default)
    return Label(
        model=ModelSource.find(raw["model"]),
        texts=FileSource.find(file, OPTION),
        splits=_own_splits(raw),
        max_length=length,
    )


def texts_to_label(raw: Raw, file: str) -> Split:
    """Return the texts of a file that the recipe's task does not contain.

    Args:
        raw: The recipe of a compression.
        file: As for `label_stage`.
    """
    path = Path(FileSource.find(file, OPTION).path)
    return new_texts(Task.named(raw["task"]), path, (data.load() for data in _own_splits(raw)))


def with_texts(raw: Raw, task_file: Path) -> Raw:
    """Return the recipe that trains on labelled texts besides its own.

    Args:
        raw: The recipe of a compression.
        task_file: The task file of the labelled texts.
    """
    data = dict(raw.get("data") or {})
    return {**raw, "data": {**data, "mix": [*data.get("mix", ()), {"on": f"{task_file}/train"}]}}


def with_planned_texts(raw: Raw, file: str) -> Raw:
    """Return the recipe with the texts of a file under any label, to plan its trainings before there is an original.

    Args:
        raw: The recipe of a compression.
        file: As for `label_stage`.
    """
    texts = texts_to_label(raw, file)
    label = (texts.task.labels or [""])[0]
    return with_texts(raw, write_labelled(Path(_scratch().name), texts, [label] * len(texts)))


@cache
def _scratch() -> TemporaryDirectory[str]:
    """Return a folder that lasts as long as the process: a plan reads its data when it is asked about it."""
    return TemporaryDirectory(prefix="tombola-")


def _own_splits(raw: Raw) -> tuple[DataSource, ...]:
    folder = (raw.get("data") or {}).get("folder")
    return tuple(DataSource.find(raw["task"], name, folder) for name in Task.named(raw["task"]).split_names())
