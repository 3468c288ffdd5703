"""Studies: several recipes and grids over them, planned as one graph of stages."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from tombola.errors import RecipeError
from tombola.foundations.settings import Settings, checked
from tombola.pipeline.engines import Engine, Local
from tombola.pipeline.plan import Plan, plan_cells
from tombola.recipe.builtin import find_recipe
from tombola.recipe.grid import Cell, expand
from tombola.recipe.reading import Raw, load_recipe

OWN = ("grid", "engine")
"""The keys that a plain recipe may have besides its own when it is run as a study."""


class StudySettings(Settings):
    """A study file. A plain recipe is a study of itself."""

    name: str = Field("study", description="what to call it in tables and folders")
    about: str = Field("", description="a sentence for the reader")
    recipes: list[str | Raw] | dict[str, str | Raw] = Field(
        min_length=1, description="recipes by path or name, or written out; a mapping gives them names"
    )
    over: Raw = Field({}, description="laid over every recipe; a list makes a grid, as in a recipe")
    grid: dict[str, list[Any] | dict[str, Any]] = Field(
        {}, description="fields by path, with the values to try; a mapping gives the values names"
    )
    engine: Engine = Local()


def read_study(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any
) -> StudySettings:
    """Read a study or a recipe, with overrides laid over every recipe in it."""
    found = find_recipe(source)
    raw, changes = load_recipe(found), load_recipe({}, overrides, **settings)
    if "recipes" in raw:
        raw = {**raw, "over": load_recipe(raw.get("over") or {}, **changes)}
        base = found.parent if isinstance(found, Path) else Path()
        raw["recipes"] = _beside(raw["recipes"], base)
    else:
        recipe = {name: value for name, value in load_recipe(raw, **changes).items() if name not in OWN}
        about: Raw = {name: recipe[name] for name in ("name", "about") if name in recipe}
        raw = {**about, "recipes": [recipe], **{name: raw[name] for name in OWN if name in raw}}
    return checked(StudySettings, raw)


def plan_study(settings: StudySettings) -> Plan:
    """The cells of a study and the stages that they share."""
    raw = settings.model_dump(mode="json", exclude_defaults=True)
    return plan_cells(settings.name, settings.about, raw, _cells(settings))


def _beside(recipes: Any, base: Path) -> Any:
    """Recipes named by a path are found beside the study's own file first."""

    def find(recipe: Any) -> Any:
        near = base / recipe if isinstance(recipe, str) else None
        return str(near) if near is not None and near.is_file() else recipe

    if isinstance(recipes, dict):
        return {name: find(recipe) for name, recipe in recipes.items()}
    return [find(recipe) for recipe in recipes] if isinstance(recipes, list) else recipes


def _cells(study: StudySettings) -> Iterator[Cell]:
    named = study.recipes if isinstance(study.recipes, dict) else {_name(one): one for one in study.recipes}
    if len(named) < len(study.recipes):
        raise RecipeError("recipes: two have the same name; write a mapping that gives each its own")
    for name, source in named.items():
        raw = load_recipe(find_recipe(source), **study.over)
        place = {"recipe": name} if len(named) > 1 else {}
        for point in itertools.product(*(_options(path, values) for path, values in study.grid.items())):
            changed = load_recipe(raw, **{path: value for path, _, value in point})
            axes = place | {path: label for path, label, _ in point}
            for cell in expand(changed):
                yield cell.model_copy(update={"axes": axes | cell.axes})


def _name(recipe: str | Raw) -> str:
    if isinstance(recipe, str):
        return Path(recipe).stem if Path(recipe).is_file() else recipe.removesuffix(".yaml")
    return str(recipe.get("name", "run"))


def _options(path: str, values: list[Any] | dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The values of an axis, each with its name in tables."""
    if not values:
        raise RecipeError(f"grid.{path}: an empty list makes an empty grid")
    if isinstance(values, dict):
        return [(path, name, value) for name, value in values.items()]
    plain = (str, int, float, bool, type(None))
    return [(path, value if isinstance(value, plain) else json.dumps(value), value) for value in values]
