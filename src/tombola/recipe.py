"""The recipe: everything that a user may say, from YAML and `key=value`, typed and checked.

A list where one value is expected makes a grid; `variants` name alternatives that share the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin

import yaml
from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationInfo, model_validator

from tombola.bias.settings import BiasModel
from tombola.errors import RecipeError, UnknownName
from tombola.recipe_parts import (
    AttackSettings,
    DataSettings,
    DrawSettings,
    EvaluateSettings,
    MeasureSettings,
    RetrainSettings,
)
from tombola.search import SearchSettings, searches
from tombola.settings import TAGS, Settings, checked, settings_type
from tombola.training.settings import TrainSettings
from tombola.yaml12 import parse_yaml

Raw = dict[str, Any]


def _find_search(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, dict):
        return value
    if "method" not in value:
        raise ValueError("needs a method, one of " + ", ".join(searches))
    return checked(searches[value["method"]].settings, value, "search")


class Recipe(Settings):
    """One ticket: a model, a task, a search, a draw, a retraining and what to evaluate on."""

    name: str = Field("run", description="what to call it in tables and folders")
    about: str = Field("", description="a sentence for the reader")
    model: str = Field(description="an embedded model, a local folder or a hub id")
    pooler: Literal["own", "new"] = Field(
        "own",
        description="new: initialised as the head is, for sentence encoders, whose own was never trained",
    )
    task: str = Field(description="a task's name, or the path of a task file")
    seed: int = Field(1, ge=0)
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    data: DataSettings = DataSettings()
    bias: BiasModel | None = Field(None, description="a model of the data's bias, for losses that counter it")
    train: TrainSettings = TrainSettings()
    search: Annotated[SerializeAsAny[SearchSettings] | None, BeforeValidator(_find_search)] = None
    draw: DrawSettings = DrawSettings()
    retrain: RetrainSettings | None = RetrainSettings()
    evaluate: EvaluateSettings = EvaluateSettings()
    attack: AttackSettings | None = None
    measure: MeasureSettings | None = Field(None, description="how large and how fast the result is")

    @model_validator(mode="after")
    def _debiased_by_something(self) -> Self:
        searching = getattr(self.search, "train", None)
        for name, part in (("train", self.train), ("search.train", searching), ("retrain", self.retrain)):
            if part is not None and part.loss.needs_bias and self.bias is None:
                raise ValueError(
                    f"{name}.loss: {part.loss.kind} needs a bias model: add one, "
                    "e.g. bias: {method: lexical_overlap}"
                )
        return self


class Cell(Settings):
    """One point of the grid: a whole recipe, the variant it belongs to, and where it is on each axis."""

    variant: str
    axes: dict[str, Any]
    recipe: Recipe
    source: Recipe | None = None
    """The recipe as it is for the task that the mask is searched on, where that is another."""

    @property
    def label(self) -> str:
        """A name that tells this cell from all others of the grid, fit for a folder."""
        parts = [f"{name.rsplit('.', 1)[-1]}-{value}" for name, value in self.axes.items()]
        return "_".join([self.variant, *parts]).replace("/", "-")

    def raw(self) -> Raw:
        """The recipe that gives this one cell again, without what is at its default."""
        raw = self.recipe.model_dump(mode="json", exclude_defaults=True)
        if self.source is not None:
            raw["per_task"] = {
                self.source.task: self.source.model_dump(mode="json", include={"pooler", "train", "data"})
            }
        return raw


def load_recipe(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any
) -> Raw:
    """Read a recipe and lay `key=value` overrides over it. The result is raw: `expand` checks it."""
    raw = dict(source) if isinstance(source, Mapping) else _read(Path(source))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise RecipeError(f"{override!r}: an override is written key=value, e.g. draw.sparsity=0.5")
        settings[key] = _parse(text, f"override {key}")
    for key, value in settings.items():
        *path, last = key.replace("__", ".").split(".")
        nested: Raw = {last: value}
        for part in reversed(path):
            nested = {part: nested}
        raw = merge(raw, nested)
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


def merge(base: Raw, changes: Raw) -> Raw:
    """Lay `changes` over `base`. A mapping with a `method` or `kind` of its own replaces another one's settings."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and not _other(old, value):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def _other(old: Raw, new: Raw) -> bool:
    return any(tag in new and new[tag] != old.get(tag) for tag in TAGS)


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


def _read(path: Path) -> Raw:
    if not path.is_file():
        near = sorted(str(p) for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        raise (
            UnknownName("recipe file", str(path), near)
            if near
            else RecipeError(f"there is no recipe file {path}")
        )
    raw = _parse(path.read_text(), str(path))
    if raw is None:
        raise RecipeError(f"{path}: is empty; a recipe says at least model and task")
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: a recipe is a mapping of settings, this is {type(raw).__name__}")
    return raw


def _parse(text: str, where: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise RecipeError(f"{where}{line}: not valid YAML: {getattr(error, 'problem', error)}") from None
