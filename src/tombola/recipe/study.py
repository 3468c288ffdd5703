"""Studies: several recipes, and grids over them, in one file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from tombola.errors import RecipeError
from tombola.foundations.caching import run_cache
from tombola.foundations.settings import Settings
from tombola.recipe.axes import repeated_options
from tombola.recipe.builtin import find_recipe
from tombola.recipe.cell import Cell
from tombola.recipe.claims import Claim, check_claims, read_claims
from tombola.recipe.grid import check_size, count_cells, expand
from tombola.recipe.reading import Raw, load_recipe, parse_overrides

OWN = ("grid", "engine")
"""The extra keys that a plain recipe may have when it is run as a study."""


class StudyRecipe(Settings):
    """A study file. A plain recipe is a study with a single recipe."""

    name: str = Field("study", description="name in tables and folders")
    about: str = Field("", description="one-sentence description")
    plugins: tuple[str, ...] = Field(
        (), description="Python files or modules that define methods, attacks, tasks … used in the recipes"
    )
    recipes: list[str | Raw] | dict[str, str | Raw] = Field(
        min_length=1, description="recipes by path or name, or written out; a mapping names them"
    )
    over: Raw = Field({}, description="changes to every recipe; a list makes a grid, as in a recipe")
    grid: dict[str, list[Any] | dict[str, Any]] = Field(
        {}, description="fields by path, with the values to try; a mapping names the values"
    )
    claims: dict[str, Claim | None] = Field(
        {}, description="hypotheses by name, each of one variant over another; null drops one"
    )


def load_study(source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any) -> Raw:
    """Read a study or a recipe, and apply changes to every recipe in it. The result is not checked.

    Changes to a study's name, description, engine or own claims apply to the study itself.
    """
    found = find_recipe(source)
    raw = load_recipe(found)
    if "recipes" not in raw:
        of_study = {name: raw.pop(name) for name in OWN if name in raw}
        recipe = load_recipe(raw, overrides, **settings)
        of_study |= {name: recipe.pop(name) for name in OWN if name in recipe}
        of_study |= {"claims": recipe.pop("claims", None) or {}}
        about: Raw = {name: recipe[name] for name in ("name", "about") if name in recipe}
        return {**about, "recipes": [recipe], **of_study}
    base = found.parent if isinstance(found, Path) else Path()
    changes = {key.replace("__", "."): value for key, value in settings.items()}
    changes = {**parse_overrides(overrides), **changes}
    own = {key: value for key, value in changes.items() if _is_own(key, raw)}
    over = raw.get("over") or {}
    if not isinstance(over, dict):  # left to the check of the study
        return raw
    over = {**over, **{key: value for key, value in changes.items() if key not in own}}
    if "claims" in own and own["claims"] is None:  # those of the recipes too
        over["claims"] = None
    study = load_recipe(raw, **own)
    recipes = _relative_to(raw["recipes"], base)
    return {**study, "claims": study.get("claims") or {}, "over": over, "recipes": recipes}


def _is_own(key: str, study: Raw) -> bool:
    """Return whether a change is to the study itself, or to one of its claims, and not to its recipes."""
    first, _, name = key.partition(".")
    if first != "claims":
        return first in ("name", "about", "engine")
    return not name or name.split(".")[0] in (study.get("claims") or {})


def study_claims(study: StudyRecipe, cells: Sequence[Cell]) -> dict[str, Claim]:
    """Return the claims of a study and of its recipes; among several recipes, each claims for itself alone.

    A study's own claim is left out if it is about a variant that the study's changes drop.

    Raises:
        RecipeError: If a claim names a variant or a grid point that the cells do not have.
    """
    raws, unchanged = _raws(study), _raws(study.model_copy(update={"over": {}}))
    dropped = {name for raw in unchanged.values() for name in raw.get("variants") or {}}
    dropped -= {cell.variant for cell in cells}
    claims = {
        name: claim
        for name, claim in study.claims.items()
        if claim is not None and not dropped & {claim.variant, claim.over}
    }
    for recipe, raw in raws.items():
        for name, claim in read_claims(raw).items():
            narrowed = claim.model_copy(update={"at": {"recipe": recipe, **claim.at}})
            claims |= {f"{recipe}: {name}": narrowed} if len(raws) > 1 else {name: claim}
    check_claims(claims, cells)
    return claims


def study_cells(study: StudyRecipe) -> list[Cell]:
    """Return the cells of all recipes of a study, over its grid.

    Raises:
        RecipeError: With all mistakes of all recipes.
    """
    if repeated := [
        sentence
        for path, values in study.grid.items()
        if isinstance(values, list)
        for sentence in repeated_options(f"grid.{path}", values)
    ]:
        raise RecipeError(*repeated)
    points = list(itertools.product(*(_options(path, values) for path, values in study.grid.items())))
    raws = _raws(study)
    grids = [
        (name, point, load_recipe(raw, **{path: value for path, _, value in point}))
        for name, raw in raws.items()
        for point in points
    ]
    check_size(sum(count_cells(raw) for _, _, raw in grids))
    cells: list[Cell] = []
    mistakes: list[str] = []
    with run_cache():
        for name, point, raw in grids:
            axes = ({"recipe": name} if len(raws) > 1 else {}) | {path: label for path, label, _ in point}
            try:
                expanded = expand(raw)
                cells += [replace(cell, axes=axes | cell.axes) for cell in expanded] if axes else expanded
            except RecipeError as error:
                where = f"recipes.{name}: " if len(raws) > 1 else ""
                mistakes += [f"{where}{mistake}" for mistake in error.mistakes]
    if mistakes:
        raise RecipeError(*mistakes)
    return cells


def _raws(study: StudyRecipe) -> dict[str, Raw]:
    """Return the raw recipes of a study by name, with its changes."""
    named = (
        study.recipes
        if isinstance(study.recipes, dict)
        else {_name(source): source for source in study.recipes}
    )
    if len(named) < len(study.recipes):
        raise RecipeError("recipes: two have the same name; use a mapping that gives each its own")
    return {name: load_recipe(find_recipe(source), **study.over) for name, source in named.items()}


def _relative_to(recipes: Any, base: Path) -> Any:
    """Resolve the paths of recipes, relative to the study's file first."""

    def find(recipe: Any) -> Any:
        near = base / recipe if isinstance(recipe, str) else None
        return str(near) if near is not None and near.is_file() else recipe

    if isinstance(recipes, dict):
        return {name: find(recipe) for name, recipe in recipes.items()}
    return [find(recipe) for recipe in recipes] if isinstance(recipes, list) else recipes


def _name(recipe: str | Raw) -> str:
    if isinstance(recipe, str):
        return Path(recipe).stem if Path(recipe).is_file() else recipe.removesuffix(".yaml")
    return str(recipe.get("name", "run"))


def _options(path: str, values: list[Any] | dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the values of an axis, each with its name in tables."""
    if not values:
        raise RecipeError(f"grid.{path}: an empty list makes an empty grid; give at least one value")
    if isinstance(values, dict):
        return [(path, name, value) for name, value in values.items()]
    plain = (str, int, float, bool, type(None))
    return [(path, value if isinstance(value, plain) else json.dumps(value), value) for value in values]
