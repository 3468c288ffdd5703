"""What there is to name in a recipe, and whether a file names it rightly.

Each list imports what it is of and no more: the recipes are there at once, and no one waits for torch to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from tombola.errors import UnknownName
from tombola.foundations.yaml12 import parse_yaml
from tombola.recipe.builtin import RECIPES, find_recipe, recipe_names

Rows = list[tuple[str, str]]


def catalogue(kind: str | None = None) -> dict[str, Rows]:
    """Names with one line each, by kind."""
    if kind is not None and kind not in _LISTS:
        raise UnknownName("list", kind, _LISTS)
    return {name: rows() for name, rows in _LISTS.items() if kind in (None, name)}


def _models() -> Rows:
    from tombola.models.finding import EMBEDDED

    return [(name, f"embedded, from the package {package}") for name, package in EMBEDDED.items()]


def _tasks() -> Rows:
    from tombola.tasks import Task, task_names

    return [(name, Task.named(name).about) for name in task_names()]


def _methods() -> Rows:
    from tombola.search import searches

    return [(name, search.about) for name, search in searches.items()]


def _objectives() -> Rows:
    from tombola.objectives import objectives
    from tombola.search import about

    return [(name, about(objective)) for name, objective in objectives.items()]


def _attacks() -> Rows:
    from tombola.attacks import attacks

    return [(name, kind.paper) for name, kind in attacks.items()]


def _families() -> Rows:
    from tombola.families import families

    return [(family.name, ", ".join(family.model_types)) for family in families()]


def _recipes() -> Rows:
    return [(name, _recipe_about(RECIPES / f"{name}.yaml")) for name in recipe_names()]


_LISTS: dict[str, Callable[[], Rows]] = {
    "models": _models,
    "tasks": _tasks,
    "methods": _methods,
    "objectives": _objectives,
    "attacks": _attacks,
    "families": _families,
    "recipes": _recipes,
}


def check_file(file: str, overrides: Iterable[str] = ()) -> str:
    """Check a recipe or a task file without running it; a sentence that says what it is."""
    from tombola.recipe.grid import expand
    from tombola.recipe.reading import load_recipe
    from tombola.tasks import Task
    from tombola.tasks.targets import all_targets, find_target

    path = find_recipe(file)
    if isinstance(path, Path) and path.is_file() and _is_task(path):
        task = Task.from_file(path)
        return f"a valid task, {task.name} version {task.version}"
    raw = load_recipe(path, overrides)
    if "tasks" in raw:
        from tombola.pipeline.share_planner import check_share

        return check_share(raw)
    cells = expand(raw)
    for cell in cells:
        Task.named(cell.recipe.task)
        for on in all_targets(cell.recipe.evaluate.on, cell.recipe.task):
            Task.named(find_target(on, cell.recipe.task)[0])
    variants = len({cell.variant for cell in cells})
    return f"a valid recipe, {_count(len(cells), 'cell')} in {_count(variants, 'variant')}"


def _is_task(path: Path) -> bool:
    try:
        raw = parse_yaml(path.read_text())
    except yaml.YAMLError:
        return False
    return isinstance(raw, dict) and "source" in raw


def _recipe_about(path: Path) -> str:
    return str(parse_yaml(path.read_text(encoding="utf-8")).get("about", ""))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
