"""Evaluation targets of a recipe: splits of its task, other tasks, and names for groups of companions."""

from collections.abc import Iterable
from pathlib import Path

from tombola.errors import DataError, RecipeError, UnknownName
from tombola.foundations.caching import cached_in_run
from tombola.tasks.data_files import data_advice, is_data_file
from tombola.tasks.task import HOLDOUT, Task, task_names


@cached_in_run
def all_targets(on: Iterable[str], task: str) -> list[str]:
    """Expand an "evaluate on …" list: `ood` and `adversarial` stand for the task's companions of that kind."""
    companions = Task.named(task).companions
    named = {"ood": companions.ood, "adversarial": companions.adversarial}
    return list(dict.fromkeys(target for name in on for target in named.get(name, [name])))


@cached_in_run
def find_target(on: str, task: str) -> tuple[str, str]:
    """Resolve an "evaluate on …" entry to (task, split): a split of the task, another task, or a `task/split`.

    A change of the texts may follow a split, as in `validation+typos`, and under a synthetic bias `+anti` or
    `+plain`; `advglue` is the task's part of AdvGLUE.
    """
    own_task = Task.named(task)
    name = on.partition("+")[0]
    if name in (*own_task.split_names(), HOLDOUT):
        return task, on
    if is_data_file(Path(on)):
        raise DataError(data_advice(Path(on)))
    if (part := f"{on}_{own_task.name}") in own_task.companions.ood + own_task.companions.adversarial:
        on = part
    is_file = on.endswith((".yaml", ".yml"))
    name, slash, split = (on, "", "") if is_file else on.rpartition("/")
    if not slash and not is_file and on not in task_names():
        raise _unknown(on, own_task)
    other = Task.named(name if slash else on)
    if other.kind != own_task.kind:
        raise RecipeError(
            f"cannot evaluate on {on!r}: it is a {other.kind} task, but a model for {own_task.name} only has a "
            f"head for {own_task.kind}; choose a {own_task.kind} task"
        )
    if slash:
        if split.partition("+")[0] not in other.split_names():
            raise UnknownName(f"split of {other.name}", split, other.split_names())
        return name, split
    return on, other.default_split


def _unknown(on: str, own_task: Task) -> RecipeError | UnknownName:
    """Return the error for an unknown name: the nearest names, or the available splits."""
    error = UnknownName("split or task to evaluate on", on, [*own_task.split_names(), *task_names()])
    if "Did you mean" in str(error):
        return error
    return RecipeError(
        f"unknown split or task to evaluate on {on!r}. {own_task.name} has the splits "
        f"{', '.join(own_task.split_names())}; `tombola list tasks` shows other tasks"
    )
