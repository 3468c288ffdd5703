"""Everything that a recipe can refer to by name.

Each list comes from the registry of its kind, and imports nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tombola.errors import UnknownName
from tombola.foundations.yaml12 import parse_yaml
from tombola.recipe.builtin import RECIPES, recipe_names

Rows = list[tuple[str, str]]


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


def summary(width: int = 6) -> Rows:
    """Return for each kind the first names, and the number of entries if there are more."""
    rows = []
    for kind, entries in catalogue().items():
        names = [name for name, _ in entries]
        ellipsis = f" … ({len(names)})" if len(names) > width else ""
        rows.append((kind, ", ".join(names[:width]) + ellipsis))
    return rows


def _models() -> Rows:
    from tombola.models.finding import EMBEDDED
    from tombola.models.scratch import ABOUT

    embedded = [(name, f"embedded, from the package {package}") for name, package in EMBEDDED.items()]
    return embedded + list(ABOUT.items())


def _tasks() -> Rows:
    from tombola.tasks import Task, task_names

    return [(name, Task.named(name).about) for name in task_names()]


def _task_kinds() -> Rows:
    from tombola.tasks import task_kinds

    return [(name, kind.about) for name, kind in task_kinds.items()]


def _metrics() -> Rows:
    from tombola.tasks.metrics import metrics

    return [(name, metric.about) for name, metric in metrics.items()]


def _methods() -> Rows:
    from tombola.search import searches

    return [(name, search.about) for name, search in searches.items()]


def _gates() -> Rows:
    from tombola.gates import gates

    return _documented(gates.items())


def _budgets() -> Rows:
    from tombola.gates import budgets

    return _documented(budgets.items())


def _losses() -> Rows:
    from tombola.objectives.settings import losses

    return _documented((name, loss.build) for name, loss in losses.items())


def _adversaries() -> Rows:
    from tombola.objectives.settings import adversaries

    return _documented((name, adversary.build) for name, adversary in adversaries.items())


def _bias_models() -> Rows:
    from tombola.bias import bias_models

    return _documented(bias_models.items())


def _controls() -> Rows:
    from tombola.models.controls import controls

    return _documented(controls.items())


def _attacks() -> Rows:
    from tombola.attacks import attacks

    return [(name, kind.paper) for name, kind in attacks.items()]


def _augmentations() -> Rows:
    from tombola.augmentations import augmentations

    return _documented(augmentations.items())


def _defenses() -> Rows:
    from tombola.defenses import defenses

    return _documented(defenses.items())


def _families() -> Rows:
    from tombola.families import families

    return [(family.name, ", ".join(family.model_types)) for family in families()]


def _recipes() -> Rows:
    rows = []
    for name in recipe_names():
        raw = parse_yaml((RECIPES / f"{name}.yaml").read_text(encoding="utf-8"))
        rows.append((name, str(raw.get("about", ""))))
    return rows


def _documented(entries: Iterable[tuple[str, Any]]) -> Rows:
    """Return names with the first lines of their docstrings."""
    return [(name, (entry.__doc__ or "").strip().partition("\n")[0]) for name, entry in entries]


_LISTS: dict[str, Callable[[], Rows]] = {
    "models": _models,
    "tasks": _tasks,
    "kinds of task": _task_kinds,
    "metrics": _metrics,
    "methods": _methods,
    "gates": _gates,
    "budgets": _budgets,
    "losses": _losses,
    "adversaries": _adversaries,
    "bias models": _bias_models,
    "controls": _controls,
    "attacks": _attacks,
    "augmentations": _augmentations,
    "defenses": _defenses,
    "families": _families,
    "recipes": _recipes,
}

KINDS = tuple(_LISTS)
"""The kinds that can be listed."""


def check_file(file: str, overrides: Iterable[str] = (), data: bool = False) -> str:
    """Check a recipe, a study or a task file without running it, and return a one-sentence summary.

    Args:
        file: A file, or the name of a built-in recipe.
        overrides: Changes to a recipe, as `key=value`.
        data: Also read the data and the model's config, and describe them in further lines.

    Raises:
        RecipeError: With all mistakes of a recipe.
    """
    from tombola.recipe.checking import check

    return "\n".join(check(file, overrides, data))
