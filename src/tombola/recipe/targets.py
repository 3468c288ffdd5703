"""Check that the tasks and splits in a recipe exist."""

from __future__ import annotations

from collections.abc import Iterator

from tombola.augmentations import augmentations
from tombola.errors import TombolaError, UnknownName
from tombola.foundations.caching import cached_in_run
from tombola.foundations.settings import Complaint
from tombola.recipe.recipe import Recipe
from tombola.tasks import HOLDOUT, Task
from tombola.tasks.synthetic import FORMS
from tombola.tasks.targets import all_targets, find_target


def check_task_name(task: str) -> list[str]:
    """Return the problems with a task in `per_task`."""
    problem = _task_problem(task)
    return [f"per_task: {problem}"] if problem else []


def target_complaints(recipe: Recipe) -> list[Complaint]:
    """Return the problems with the tasks and splits in a recipe, with their paths."""
    if problem := _task_problem(recipe.task):
        return [Complaint(("task",), ("task",), problem)]
    held_out, biased = recipe.data.holdout is not None, recipe.data.synthetic_bias is not None
    mistakes = [
        Complaint(path, path, problem)
        for path, on in _targets(recipe)
        if (problem := _problem(on, recipe.task, held_out, biased)) is not None
    ]
    return mistakes or _chosen_and_reported(recipe)


def _chosen_and_reported(recipe: Recipe) -> list[Complaint]:
    """Complain if the model is chosen on a data set that it is reported on."""
    best, task = recipe.evaluate.best, recipe.task
    if best is None:
        return []
    reported = {find_target(on, task) for on in all_targets(recipe.evaluate.on, task)}
    if find_target(best, task) not in reported:
        return []
    path = ("evaluate", "best")
    problem = (
        f"the model would be chosen on {best!r}, which is also reported: choose it on other data, e.g. best: holdout "
        "with data.holdout: 0.1"
    )
    return [Complaint(path, path, problem)]


def _targets(recipe: Recipe) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every reference to data, with its path."""
    for on in all_targets(recipe.evaluate.on, recipe.task):
        yield ("evaluate", "on"), on
    if recipe.evaluate.best is not None:
        yield ("evaluate", "best"), recipe.evaluate.best
    if recipe.attack is not None:
        yield ("attack", "on"), recipe.attack.on
    for index, mixed in enumerate(recipe.data.mix):
        yield ("data", "mix", str(index), "on"), mixed.on
    for index, mixed in enumerate(getattr(recipe.search, "mix", ())):
        yield ("search", "mix", str(index), "on"), mixed.on


@cached_in_run
def _task_problem(task: str) -> str | None:
    try:
        Task.named(task)
    except TombolaError as error:
        return str(error)
    return None


@cached_in_run
def _problem(on: str, task: str, held_out: bool, biased: bool) -> str | None:
    """Return the problem with a reference to data, given whether the recipe holds data out and adds a bias."""
    try:
        other, split = find_target(on, task)
    except TombolaError as error:
        return str(error)
    name, _, form = split.partition("+")
    if other != task and form in FORMS:
        return f"the split {split!r} exists only for the recipe's own task, with data.synthetic_bias"
    if other != task:
        return None if not form or form in augmentations else _unknown_change(name, form)
    if name == HOLDOUT and not held_out and name not in Task.named(task).split_names():
        return "the split 'holdout' exists only with data.holdout: set that to a share of the training data"
    if form in FORMS and not biased:
        return f"the split {split!r} exists only with data.synthetic_bias: set it"
    if form and form not in FORMS and form not in augmentations:
        return _unknown_change(name, form)
    return None


def _unknown_change(name: str, form: str) -> str:
    return str(UnknownName(f"change of {name}", form, augmentations))
