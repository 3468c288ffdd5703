"""Find the mistakes of a task file whose keys are valid one by one, but do not fit together."""

from typing import TYPE_CHECKING

from tombola.errors import RecipeError, UnknownName
from tombola.foundations.settings import checked
from tombola.tasks.kinds import kind_of, task_kinds
from tombola.tasks.metrics import check_metrics

if TYPE_CHECKING:
    from tombola.tasks.task import Task


def mistakes_of(task: "Task") -> list[str]:
    """Return all mistakes of a task, each beginning with the key that is wrong.

    Args:
        task: The task.
    """
    if task.kind not in task_kinds:
        return [f"kind: {UnknownName('kind of task', task.kind, task_kinds)}"]
    mistakes = _of_kind(task)
    classes = task.labels or []
    if len({label.casefold() for label in classes}) != len(classes):
        mistakes.append("labels: must be unique")
    if not set(task.merge.values()) <= set(classes) or set(task.merge) & set(classes):
        mistakes.append("merge: maps labels that are not among `labels` to some that are")
    if task.unanswerable and task.kind != "question-answering":
        mistakes.append("unanswerable: only works for question-answering tasks")
    if not set(task.attackable) <= set(task.text):
        mistakes.append(f"attackable: takes columns of `text` ({', '.join(task.text)})")
    return [*mistakes, *_of_source(task)]


def _of_kind(task: "Task") -> list[str]:
    """Return the mistakes that the kind of task decides; metrics are checked once the labels fit it."""
    mistakes: list[str] = []
    try:
        kind_of(task).check(task)
        check_metrics(task.metrics, task.kind, len(task.labels or ()))
    except ValueError as error:
        mistakes.append(str(error))
    try:
        checked(kind_of(task).settings, task.settings, "settings")
    except RecipeError as error:
        mistakes += error.mistakes
    return mistakes


def _of_source(task: "Task") -> list[str]:
    """Return the mistakes in the files and splits."""
    files = task.source.files
    unknown = {value for layout in task.source.layouts for value in layout.values.values()}
    mistakes = [
        f"source.values: {value!r} is not one of `labels`"
        for value in sorted(unknown - set(task.labels or ()))
    ]
    mistakes += [
        f"holdout.{name}: `of` must be a split with a file, and {name!r} one without"
        for name, part in task.holdout.items()
        if part.of not in files or name in files
    ]
    if not files:
        mistakes.append("source.files: name the file of each split")
    if task.reported and task.reported not in task.split_names():
        mistakes.append(f"reported: {task.reported!r} is not a split ({', '.join(task.split_names())})")
    return mistakes
