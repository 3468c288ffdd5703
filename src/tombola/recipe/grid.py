"""The grid of a recipe: every list makes an axis, and `variants` name alternatives that share the rest."""

from __future__ import annotations

import itertools
from typing import Any, get_args, get_origin

from tombola.errors import RecipeError
from tombola.foundations.settings import Settings, checked, settings_type
from tombola.recipe.reading import Raw, merge
from tombola.recipe.recipe import Recipe
from tombola.search import searches


class Cell(Settings):
    """One point of the grid: a whole recipe, the variant it belongs to, and where it is on each axis."""

    variant: str
    axes: dict[str, Any]
    recipe: Recipe
    source: Recipe | None = None
    """The recipe as it is for the task that the mask is searched on, where that is another."""

    @property
    def label(self) -> str:
        """A name that tells this cell from all others of the grid."""
        parts = [f"{name.rsplit('.', 1)[-1]}-{value}" for name, value in self.axes.items()]
        return "_".join([self.variant, *parts])

    def raw(self) -> Raw:
        """The recipe that gives this one cell again, without what is at its default."""
        raw = self.recipe.model_dump(mode="json", exclude_defaults=True)
        if self.source is not None:
            raw["per_task"] = {
                self.source.task: self.source.model_dump(mode="json", include={"pooler", "train", "data"})
            }
        return raw


def expand(raw: Raw) -> list[Cell]:
    """All cells of a raw recipe: variants by grid, in the order they are written, seeds innermost."""
    raw = dict(raw)
    if "tasks" in raw and "task" not in raw:
        raise RecipeError("its `tasks` share tickets: `tombola share` takes it; or give one `task`")
    per_task = raw.pop("per_task", None) or {}
    variants = raw.pop("variants", None) or {str(raw.get("name", "run")): {}}
    if not isinstance(variants, dict):
        raise RecipeError("variants: takes a mapping from a name to the settings that differ")
    cells = []
    for name, changes in variants.items():
        if not isinstance(changes or {}, dict):
            raise RecipeError(
                f"variants.{name}: takes a mapping of the settings that differ, not {changes!r}"
            )
        one = merge(raw, changes or {})
        if one.get("search") is None:
            one.pop("draw", None)
        axes = _axes(one, Recipe, ())
        axes.sort(key=lambda axis: axis[0] == ("seed",))
        for values in itertools.product(*(options for _, options in axes)):
            cell = one
            for (path, _), value in zip(axes, values, strict=True):
                cell = _with(cell, path, value)
            point = {".".join(path): value for (path, _), value in zip(axes, values, strict=True)}
            cells.append(_cell(str(name), point, cell, per_task))
    return cells


def _cell(variant: str, axes: dict[str, Any], raw: Raw, per_task: Raw) -> Cell:
    recipe = _for_task(raw, raw.get("task"), per_task, variant)
    on = recipe.search.task if recipe.search else None
    source = _for_task(raw, on, per_task, variant) if on not in (None, recipe.task) else None
    return Cell(variant=variant, axes=axes, recipe=recipe, source=source)


def _for_task(raw: Raw, task: Any, per_task: Raw, variant: str) -> Recipe:
    """The recipe for one task, with what `per_task` says of it laid over."""
    changed = merge({**raw, "task": task} if task is not None else raw, per_task.get(str(task)) or {})
    return checked(
        Recipe, _inherit(changed), "" if variant == raw.get("name", "run") else f"variants.{variant}"
    )


OWN_TO_SEARCH = {
    *("epochs", "steps", "learning_rate", "weight_decay", "warmup", "schedule"),
    *("optimizer", "betas", "epsilon", "select"),
}
"""How a search is optimised is its own affair; how data is fed to it and what is minimised is as in `train`."""


def _inherit(raw: Raw) -> Raw:
    """What `retrain` does not say is as in `train`, and so is what a search that trains does not say."""
    train, retrain, search = raw.get("train") or {}, raw.get("retrain", {}), raw.get("search")
    if not isinstance(train, dict):
        return raw
    if isinstance(retrain, dict):
        raw = {**raw, "retrain": {**train, **retrain}}
    if isinstance(search, dict) and _trains(search) and isinstance(search.get("train") or {}, dict):
        shared = {name: value for name, value in train.items() if name not in OWN_TO_SEARCH}
        raw = {**raw, "search": {**search, "train": {**shared, **(search.get("train") or {})}}}
    return raw


def _trains(search: Raw) -> bool:
    method = str(search.get("method"))
    return method in searches and "train" in searches[method].settings.model_fields


def _axes(raw: Raw, kind: type[Any], path: tuple[str, ...]) -> list[tuple[tuple[str, ...], list[Any]]]:
    if "method" in raw and path == ("search",) and isinstance(raw["method"], str):
        kind = searches[raw["method"]].settings
    axes: list[tuple[tuple[str, ...], list[Any]]] = []
    for key, value in raw.items():
        field = kind.model_fields.get(key)
        if field is None:
            continue
        if isinstance(value, list) and not _takes_list(field.annotation):
            if not value:
                raise RecipeError(f"{'.'.join((*path, key))}: an empty list makes an empty grid")
            axes.append(((*path, key), value))
        elif isinstance(value, dict) and (inner := settings_type(field.annotation, value)) is not None:
            axes += _axes(value, inner, (*path, key))
    return axes


def _with(raw: Raw, path: tuple[str, ...], value: Any) -> Raw:
    head, *rest = path
    return {**raw, head: _with(raw[head], tuple(rest), value) if rest else value}


def _takes_list(annotation: Any) -> bool:
    if get_origin(annotation) in (list, tuple) or annotation in (list, tuple):
        return True
    return any(_takes_list(inner) for inner in get_args(annotation))
