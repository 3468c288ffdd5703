"""What there is to name in a recipe, and whether a file names it rightly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from tombola.attacks import attacks
from tombola.errors import TombolaError, UnknownName
from tombola.families import families
from tombola.models import EMBEDDED
from tombola.objectives import objectives
from tombola.recipe import expand, load_recipe
from tombola.running import find_recipe
from tombola.search import about, searches
from tombola.sharing.plan import check_share
from tombola.shipped import RECIPES, recipe_names
from tombola.stages.sources import all_targets, find_target
from tombola.tasks import Task, task_names
from tombola.yaml12 import parse_yaml

Rows = list[tuple[str, str]]


def catalogue(kind: str | None = None) -> dict[str, Rows]:
    """Names with one line each, by kind."""
    found = {
        "models": [(name, f"embedded, from the package {package}") for name, package in EMBEDDED.items()],
        "tasks": [(name, Task.named(name).about) for name in task_names()],
        "methods": [(name, search.about) for name, search in searches.items()],
        "objectives": [(name, about(objective)) for name, objective in objectives.items()],
        "attacks": [(name, kind.paper) for name, kind in attacks.items()],
        "families": [(family.name, ", ".join(family.model_types)) for family in families()],
        "recipes": [(name, _recipe_about(RECIPES / f"{name}.yaml")) for name in recipe_names()],
    }
    if kind is None:
        return found
    if kind not in found:
        raise UnknownName("list", kind, found)
    return {kind: found[kind]}


def check_file(file: str, overrides: Iterable[str] = ()) -> str:
    """Check a recipe or a task file without running it; a sentence that says what it is."""
    path = find_recipe(file)
    if isinstance(path, Path) and path.is_file() and _is_task(path):
        task = Task.from_file(path)
        return f"a valid task, {task.name} version {task.version}"
    raw = load_recipe(path, overrides)
    if "tasks" in raw:
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
    try:
        return str(load_recipe(path).get("about", ""))
    except TombolaError as error:
        return f"cannot be read: {error}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
