"""The grid of a recipe: every list makes an axis, and `variants` name alternatives that share the rest."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tombola.attacks.resources import idle_options
from tombola.errors import RecipeError
from tombola.foundations.caching import cached_in_run, run_cache
from tombola.foundations.garbage import no_garbage_collection
from tombola.foundations.paths import twins
from tombola.foundations.settings import TAGS, Complaint, complaints
from tombola.recipe.axes import Path, count_points, points_of, repeated_values
from tombola.recipe.cell import Cell
from tombola.recipe.claims import check_claims, read_claims
from tombola.recipe.reading import Raw, merge
from tombola.recipe.recipe import Recipe
from tombola.recipe.targets import check_task_name, target_complaints
from tombola.search import SearchSettings

logger = logging.getLogger(__name__)

MOST_CELLS = 100_000
"""The most cells of a grid, unless the environment variable sets another limit."""
MOST_CELLS_VARIABLE = "TOMBOLA_MAX_CELLS"


@no_garbage_collection()
def expand(raw: Raw) -> list[Cell]:
    """Return all cells of a raw recipe: every variant at every grid point, in the order written, seeds innermost.

    Raises:
        RecipeError: With all mistakes of all cells.
    """
    if "tasks" in raw and "task" not in raw:
        raise RecipeError("this recipe has several `tasks`: run it with `tombola share`, or set one `task`")
    common, variants, per_task = _parts(raw)
    grids = [(str(name), merge(common, changes), changes) for name, changes in variants.items()]
    check_size(sum(count_points(settings) for _, settings, _ in grids))
    if repeated := dict.fromkeys(
        sentence for _, settings, _ in grids for sentence in repeated_values(settings)
    ):
        raise RecipeError(*repeated)
    cells: list[Cell] = []
    mistakes: list[str] = []
    with run_cache():
        mistakes += [sentence for task in per_task for sentence in check_task_name(task)]
        for name, settings, changes in grids:
            place = "" if name == common.get("name", "run") else name
            for seeds in points_of(settings):
                checked_cell: Cell | None = None  # cells that differ only in their seeds are checked once
                for point, values in seeds:
                    try:
                        cell = _reseeded(checked_cell, point) or _cell(
                            name, point, values, changes, per_task, place
                        )
                    except RecipeError as error:
                        mistakes += error.mistakes
                    else:
                        cells.append(cell)
                        checked_cell = (
                            None if any("seed" in changes for changes in per_task.values()) else cell
                        )
    if mistakes:
        raise RecipeError(*mistakes)
    check_claims(read_claims(raw), cells)
    for sentence in _without_effect(common, [settings for _, settings, _ in grids], cells):
        logger.warning("%s", sentence)
    return cells


def count_cells(raw: Raw) -> int:
    """Count the cells of a raw recipe without building them."""
    common, variants, _ = _parts(raw)
    return sum(count_points(merge(common, changes)) for changes in variants.values())


def check_size(cells: int) -> None:
    """Raise if a grid is too large to be intended."""
    value = os.environ.get(MOST_CELLS_VARIABLE)
    try:
        most = MOST_CELLS if value is None else int(value)
    except ValueError:
        raise RecipeError(f"{MOST_CELLS_VARIABLE}: takes a number of cells, not {value!r}") from None
    if cells > most:
        raise RecipeError(
            f"the grid has {cells:,} cells, more than {most:,}: shorten its lists, or set {MOST_CELLS_VARIABLE} to "
            "allow more"
        )


def _without_effect(common: Raw, variants: list[Raw], cells: list[Cell]) -> Iterator[str]:
    """Yield what is said about sections for all cells that none of them uses."""
    if all(settings.get("search") is None for settings in variants):
        for name in ("draw", "retrain"):
            if common.get(name):
                yield f"{name}: has no effect without a search; add one, e.g. search.method=magnitude"
    if common.get("bias") and not any(cell.recipe.uses_bias for cell in cells):
        yield "bias: has no effect, since no loss uses it; set one, e.g. train.loss.kind=poe"
    sections = {cell.recipe.attack for cell in cells if cell.recipe.attack is not None}
    attacks = [attack for section in sections for attack in section.recipes]
    for name in sorted({name for section in sections for name in idle_options(dict(section), attacks)}):
        yield f"attack.{name}: has no effect, since no attack uses it; leave it out"


def _parts(raw: Raw) -> tuple[Raw, dict[str, Raw], dict[str, Raw]]:
    """Return the settings that all cells share, the changes of each variant, and those of single tasks."""
    common = {key: value for key, value in raw.items() if key != "claims"}
    per_task = common.pop("per_task", None) or {}
    variants = common.pop("variants", None) or {str(common.get("name", "run")): {}}
    if not isinstance(variants, dict):
        raise RecipeError("variants: takes a mapping from names to the settings that differ")
    if not isinstance(per_task, dict):
        raise RecipeError("per_task: takes a mapping from tasks to the settings that differ")
    wrong = [
        f"{key}.{name}: takes a mapping of the settings that differ, not {changes!r}"
        for key, part in (("variants", variants), ("per_task", per_task))
        for name, changes in part.items()
        if not isinstance(changes or {}, dict)
    ]
    wrong += [
        f"{key}.{name}.plugins: can only be set at the top of a recipe, for all of its cells"
        for key, part in (("variants", variants), ("per_task", per_task))
        for name, changes in part.items()
        if isinstance(changes, dict) and "plugins" in changes
    ]
    if len(set(map(str, variants))) < len(variants):
        wrong.append("variants: a number and the same number in quotes are the same name: rename one of them")
    if clash := twins(map(str, variants)):
        wrong.append(
            f"variants: {clash[0]} and {clash[1]} would share a folder on case-insensitive disks: rename "
            "one of them"
        )
    if wrong:
        raise RecipeError(*wrong)
    return (
        common,
        {name: changes or {} for name, changes in variants.items()},
        {str(name): changes or {} for name, changes in per_task.items()},
    )


def _reseeded(cell: Cell | None, axes: dict[str, Any]) -> Cell | None:
    """Return the cell with another seed, on which no other setting depends; None if the seed is invalid."""
    if cell is None:
        return None
    try:
        seed = {"seed": _section_type("seed").validate_python(axes["seed"])}
    except ValidationError:
        return None
    source = cell.source and cell.source.model_copy(update=seed)
    return Cell(cell.variant, axes, cell.recipe.model_copy(update=seed), source)


def _cell(
    variant: str, axes: dict[str, Any], raw: Raw, changes: Raw, per_task: dict[str, Raw], place: str
) -> Cell:
    recipe = _for_task(raw, raw.get("task"), changes, per_task, place)
    on = recipe.search.task if recipe.search else None
    source = _for_task(raw, on, changes, per_task, place) if on not in (None, recipe.task) else None
    return Cell(variant=variant, axes=axes, recipe=recipe, source=source)


def _for_task(raw: Raw, task: Any, changes: Raw, per_task: dict[str, Raw], place: str) -> Recipe:
    """Return the recipe for one task, with its `per_task` settings merged in."""
    of_task = per_task.get(str(task), {})
    changed = merge({**raw, "task": task} if task is not None else raw, of_task)
    inherited = _inherit(changed)
    try:
        recipe = _recipe(inherited)
        mistakes = target_complaints(recipe)
    except ValidationError as error:
        mistakes = [
            complaint
            for complaint in complaints(error, Recipe, inherited)
            if not _inherited(complaint.path, changed)
        ]
    if not mistakes:
        return recipe

    def where(complaint: Complaint) -> str:
        if _sets(of_task, complaint.path):
            return f"per_task.{task}"
        return f"variants.{place}" if place and _sets(changes, complaint.path) else ""

    raise RecipeError(*(complaint.sentence(where(complaint)) for complaint in mistakes))


def _recipe(whole: Raw) -> Recipe:
    """Validate a recipe; sections that cells have in common are validated once."""
    return Recipe.model_validate(
        {key: _section(key, value) if isinstance(value, dict) else value for key, value in whole.items()}
    )


@cached_in_run
def _section(name: str, raw: Raw) -> Any:
    """Validate a section; if it is invalid, return it raw, so that the recipe's validation reports it."""
    if name not in Recipe.model_fields:
        return raw
    try:
        return _section_type(name).validate_python(raw)
    except ValidationError:
        return raw


@cache
def _section_type(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(Recipe.model_fields[name].rebuild_annotation())


def _sets(changes: Raw, path: Path) -> bool:
    """Return whether changes set the value at a path, or choose the kind of settings that lack it."""
    part: Any = changes
    for key in path:
        if not isinstance(part, dict) or not part:
            return False
        if key not in part:
            return any(tag in part for tag in TAGS)
        part = part[key]
        if not isinstance(part, dict):
            return True
    return bool(path)


def _inherited(path: Path, raw: Raw) -> bool:
    """Return whether a mistake in `retrain` or `search.train` comes from `train`, where it is reported already."""
    for prefix in (("retrain",), ("search", "train")):
        if path[: len(prefix)] == prefix and len(path) > len(prefix):
            part: Any = raw
            for key in prefix:
                part = part.get(key) if isinstance(part, dict) else None
            key = path[len(prefix)]
            train = raw.get("train")
            own = part if isinstance(part, dict) else {}
            return isinstance(train, dict) and key in map(str, train) and key not in map(str, own)
    return False


OWN_TO_SEARCH = {
    *("epochs", "steps", "learning_rate", "weight_decay", "warmup", "schedule"),
    *("optimizer", "betas", "epsilon", "select"),
}
"""Settings of the optimizer, which a search does not inherit from `train`, unlike those of the data and the loss."""


def _inherit(raw: Raw) -> Raw:
    """Let `retrain`, and a search that trains, inherit unset settings from `train`."""
    train, retrain, search = raw.get("train") or {}, raw.get("retrain", {}), raw.get("search")
    if not isinstance(train, dict):
        return raw
    if isinstance(retrain, dict):
        raw = {**raw, "retrain": {**train, **retrain}}
    settings = SearchSettings.meant_by(search) if isinstance(search, dict) else None
    if not isinstance(search, dict) or settings is None or "train" not in settings.model_fields:
        return raw
    as_in_train = issubclass(settings, SearchSettings) and settings.trains_weights
    changes = search.get("train")
    if not isinstance(changes or {}, dict) or (as_in_train and changes is None):
        return raw
    shared = {name: value for name, value in train.items() if as_in_train or name not in OWN_TO_SEARCH}
    return {**raw, "search": {**search, "train": {**shared, **(changes or {})}}}
