"""Everything that a recipe can refer to by name.

Each list comes from the registry of its kind, and imports nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tombola.errors import UnknownName
from tombola.foundations.yaml12 import parse_yaml
from tombola.recipe.builtin import RECIPES, recipe_names

Rows = list[tuple[str, str]]

FIRST_NAMES = 6
"""How many names of a kind a summary shows."""


def catalogue(kind: str | None = None, search: str | None = None) -> dict[str, Rows]:
    """Return names with one line each, by kind.

    Args:
        kind: A single kind, such as "tasks" or "attacks"; see `KINDS`.
        search: Only entries with this word in their name or description; empty kinds are left out.
    """
    if kind is not None and kind not in _LISTS:
        raise UnknownName("list", kind, _LISTS)
    lists = {name: rows() for name, rows in _LISTS.items() if kind in (None, name)}
    if search is None:
        return lists
    matching = {name: [row for row in rows if _matches(row, search)] for name, rows in lists.items()}
    return {name: rows for name, rows in matching.items() if rows}


def _matches(row: tuple[str, str], search: str) -> bool:
    return any(search.casefold() in text.casefold() for text in row)


def summary() -> Rows:
    """Return for each kind the first names, and the number of entries if there are more."""
    rows = []
    for kind, entries in catalogue().items():
        names = [name for name, _ in entries]
        ellipsis = f" … ({len(names)})" if len(names) > FIRST_NAMES else ""
        rows.append((kind, ", ".join(names[:FIRST_NAMES]) + ellipsis))
    return rows


def _models() -> Rows:
    from tombola.models.finding import EMBEDDED
    from tombola.models.scratch import ABOUT

    embedded = [(name, f"embedded, from the package {package}") for name, package in EMBEDDED.items()]
    return embedded + list(ABOUT.items())


def _tasks() -> Rows:
    from tombola.tasks import Task, task_names

    return [(name, Task.named(name).about) for name in task_names()]


def _families() -> Rows:
    from tombola.families import families

    return [(family.name, ", ".join(family.model_types)) for family in families()]


def _recipes() -> Rows:
    rows = []
    for name in recipe_names():
        raw = parse_yaml((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
        rows.append((name, str(raw.get("about", ""))))
    return rows


def _first_line(entry: Any) -> str:
    return (entry.__doc__ or "").strip().partition("\n")[0]


def _registered(module: str, registry: str, about: Callable[[Any], str] = _first_line) -> Callable[[], Rows]:
    """Return a function that lists a registry, which is imported only then."""

    def rows() -> Rows:
        entries = getattr(import_module(f"tombola.{module}"), registry)
        return [(name, about(entry)) for name, entry in entries.items()]

    return rows


_LISTS: dict[str, Callable[[], Rows]] = {
    "models": _models,
    "tasks": _tasks,
    "kinds of task": _registered("tasks", "task_kinds", lambda kind: kind.about),
    "metrics": _registered("tasks.metrics", "metrics", lambda metric: metric.about),
    "methods": _registered("search", "searches", lambda search: search.about),
    "gates": _registered("gates", "gates"),
    "budgets": _registered("gates", "budgets"),
    "losses": _registered("objectives.settings", "losses", lambda loss: _first_line(loss.build)),
    "adversaries": _registered(
        "objectives.settings", "adversaries", lambda adversary: _first_line(adversary.build)
    ),
    "bias models": _registered("bias", "bias_models"),
    "controls": _registered("models.controls", "controls"),
    "attacks": _registered("attacks", "attacks", lambda attack: attack.paper),
    "augmentations": _registered("augmentations", "augmentations"),
    "defenses": _registered("defenses", "defenses"),
    "families": _families,
    "recipes": _recipes,
}

KINDS = tuple(_LISTS)
"""The kinds that can be listed."""
