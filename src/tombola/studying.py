"""`tombola.study`: a grid of recipes in, on as many machines as there are; one result with its statistics out."""

from __future__ import annotations

import gc
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.engines import Engine, Local, Outcome, Ray, Watcher
from tombola.errors import RecipeError
from tombola.housekeeping import keep
from tombola.once import reading_once
from tombola.pipeline import Plan, plan
from tombola.recipe import Cell, Raw, expand, load_recipe
from tombola.results import RESULTS, Result
from tombola.running import collect, decisions, head
from tombola.settings import Settings, checked
from tombola.shipped import find_recipe
from tombola.store import Stage, Store, roads
from tombola.tabulating import Difference, differences, frontier, observations, table

if TYPE_CHECKING:
    import pandas

OWN = ("grid", "engine")
"""What a plain recipe may say besides when it is run as a study."""


class StudySettings(Settings):
    """What a study file may say. A plain recipe is a study of itself."""

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


@dataclass(frozen=True)
class Planned:
    """A study before it runs: its cells, and the stages that they share."""

    settings: StudySettings
    plans: list[Plan]
    stages: list[Stage]


class Study(Result):
    """The result of a study, with its statistics."""

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The stages that failed: why, where the log is, and the cells that are missing for it."""
        return self.content.get("failures", [])

    def rows(self) -> list[dict[str, Any]]:
        """One tidy table: for every variant, grid point, data set and metric, its statistics and decisions."""
        return table(self)

    def observations(self) -> list[dict[str, Any]]:
        """The scores that the statistics are of, one in each row."""
        return observations(self)

    def frame(self) -> pandas.DataFrame:
        """`rows` for pandas."""
        from tombola.frames import frame

        return frame(self.rows())

    def differences(self, on: str, store: Store | Path | str | None = None) -> list[Difference]:
        """Paired tests between every two variants at each point of the grid."""
        with reading_once():
            return differences(self, on, store if isinstance(store, Store) else Store(store))

    def frontier(self, aims: list[str] | None = None) -> list[dict[str, Any]]:
        """The rows that no other beats in every aim."""
        return frontier(self, aims)


def study(
    source: Path | str | Mapping[str, Any] | Planned,
    overrides: Iterable[str] = (),
    *,
    engine: Local | Ray | None = None,
    output: Path | str | None = None,
    store: Store | Path | str | None = None,
    tickets: bool = False,
    announce: Callable[[list[Stage], Store], None] = lambda stages, store: None,
    watcher: Watcher | None = None,
    **settings: Any,
) -> Study:
    """Run a study: each stage that cells share once, and nothing that is finished already.

    What fails does not stop the rest: its cells are left out, and `failures` names the logs. `settings` and
    `overrides` are laid over every recipe.
    """
    store = store if isinstance(store, Store) else Store(store)
    with reading_once():
        planned = source if isinstance(source, Planned) else plan_study(source, overrides, **settings)
        said, plans, stages = planned.settings, planned.plans, planned.stages
        folder = Path(output) if output is not None else Path("runs") / said.name
        keep(store, folder / RESULTS, stages, finished=False)
        announce(stages, store)
        outcome = (engine or said.engine).run(stages, store, watcher or Watcher())
        whole, broken = _whole(plans, outcome)
        content = {
            **head(said.name, said.about, said.model_dump(mode="json", exclude_defaults=True)),
            "stages": {"all": len(stages), "run_now": len(outcome.ran)},
            "cells": [collect(one, store, folder / "tickets" if tickets else None) for one in whole],
            "failures": _failures(outcome, broken),
        }
    result = Study(content, folder)
    content["matching"] = decisions(result)
    result.save()
    keep(store, folder / RESULTS, stages, finished=True)
    return result


def plan_study(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any
) -> Planned:
    """The cells of a study and the stages that they take, each once."""
    found = find_recipe(source)
    said = _read(load_recipe(found), load_recipe({}, overrides, **settings))
    with reading_once(), _uncollected():
        plans = [plan(cell) for cell in _cells(said, found.parent if isinstance(found, Path) else Path())]
        return Planned(said, plans, roads(stage for one in plans for stage in one.ends()))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Halves the time of a large plan: all of its many small objects stay, so looking for garbage finds none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _read(raw: Raw, changes: Raw) -> StudySettings:
    if "recipes" in raw:
        raw = {**raw, "over": load_recipe(raw.get("over") or {}, **changes)}
    else:
        recipe = {name: value for name, value in load_recipe(raw, **changes).items() if name not in OWN}
        about: Raw = {name: recipe[name] for name in ("name", "about") if name in recipe}
        raw = {**about, "recipes": [recipe], **{name: raw[name] for name in OWN if name in raw}}
    return checked(StudySettings, raw)


def _cells(said: StudySettings, base: Path) -> Iterator[Cell]:
    named = said.recipes if isinstance(said.recipes, dict) else {str(_name(one)): one for one in said.recipes}
    if len(named) < len(said.recipes):
        raise RecipeError("recipes: two have the same name; write a mapping that gives each its own")
    for name, source in named.items():
        near = base / source if isinstance(source, str) else None
        raw = load_recipe(find_recipe(near if near and near.is_file() else source), **said.over)
        place = {"recipe": name} if len(named) > 1 else {}
        for point in itertools.product(*(_options(path, values) for path, values in said.grid.items())):
            changed = load_recipe(raw, **{path: value for path, _, value in point})
            axes = place | {path: label for path, label, _ in point}
            for cell in expand(changed):
                yield cell.model_copy(update={"axes": axes | cell.axes})


def _name(recipe: str | Raw) -> Any:
    return recipe.removesuffix(".yaml") if isinstance(recipe, str) else recipe.get("name", "run")


def _options(path: str, values: list[Any] | dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The values of an axis, each with what it is called in tables."""
    if not values:
        raise RecipeError(f"grid.{path}: an empty list makes an empty grid")
    if isinstance(values, dict):
        return [(path, name, value) for name, value in values.items()]
    plain = (str, int, float, bool, type(None))
    return [(path, value if isinstance(value, plain) else json.dumps(value), value) for value in values]


def _whole(plans: list[Plan], outcome: Outcome) -> tuple[list[Plan], list[Plan]]:
    """The cells of which every stage is there, and the others."""
    missing = outcome.unfinished
    if not missing:
        return plans, []
    broken = [one for one in plans if any(stage.key in missing for stage in one.stages())]
    return [one for one in plans if one not in broken], broken


def _failures(outcome: Outcome, broken: list[Plan]) -> list[dict[str, Any]]:
    keys = {id(one): {stage.key for stage in one.stages()} for one in broken}
    return [
        {
            "stage": failure.stage.name,
            "label": failure.stage.label,
            "reason": failure.reason,
            "log": str(failure.log),
            "cells": [one.cell.label for one in broken if failure.stage.key in keys[id(one)]],
        }
        for failure in outcome.failures
    ]
