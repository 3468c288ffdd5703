"""`tombola.share`: a recipe of several tasks in; scores with and without shared tickets, and the tickets, out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tombola.engines.ranks import is_main
from tombola.errors import RecipeError
from tombola.housekeeping import keep
from tombola.once import reading_once
from tombola.pipeline import execute, unique
from tombola.recipe import Raw, load_recipe
from tombola.results import RESULTS
from tombola.running import Watch
from tombola.settings import checked
from tombola.sharing.model import task_folder
from tombola.sharing.plan import WITH, SharePlan, plan
from tombola.sharing.recipe import ShareRecipe
from tombola.sharing.result import ShareResult
from tombola.sharing.ticket import write_multi_task_ticket
from tombola.shipped import find_recipe
from tombola.stages.draw import read_draw
from tombola.stages.evaluate import read_scores
from tombola.store import Stage, Store, read_manifest
from tombola.ticket import versions


def share(
    recipe: Path | str | Mapping[str, Any],
    overrides: Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: Store | Path | str | None = None,
    announce: Callable[[list[Stage], Store], None] = lambda stages, store: None,
    watch: Watch = lambda stage, found: lambda step, total: None,
    **settings: Any,
) -> ShareResult:
    """Draw a ticket for every task, train all tasks on one encoder with and without them, and compare.

    `settings` and `overrides` change the recipe. A multi-task ticket for each seed and `results.json` go to
    `output` (default: runs/NAME). What is finished already is not run again.
    """
    raw = load_recipe(find_recipe(recipe), overrides, **settings)
    if "tasks" not in raw:
        raise RecipeError(
            "the recipe names no `tasks` that would share tickets: give it two or more, or take "
            "super_tickets/mtl_quick; a recipe of one task goes to `tombola run`"
        )
    said: ShareRecipe = checked(ShareRecipe, raw)
    store = store if isinstance(store, Store) else Store(store)
    with reading_once():
        plans = [plan(said, seed) for seed in said.seed]
        stages = unique(stage for one in plans for stage in one.stages())
        folder = Path(output) if output is not None else Path("runs") / said.name
        if is_main():
            keep(store, folder / RESULTS, stages, finished=False)
            announce(stages, store)
        ran = execute(stages, store, watch)
    content = {
        "format": 1,
        "name": said.name,
        "about": said.about,
        "recipe": raw,
        "versions": versions(),
        "stages": {"all": len(stages), "run_now": ran},
        "cells": [cell for one in plans for cell in _collect(one, store, folder, {**raw, "seed": one.seed})],
    }
    result = ShareResult(content, folder)
    content["sharing"] = {on: [asdict(row) for row in result.rows(on)] for on in result.targets}
    if is_main():
        result.save()
        keep(store, folder / RESULTS, stages, finished=True)
    return result


def _collect(one: SharePlan, store: Store, folder: Path, recipe: Raw) -> list[dict[str, Any]]:
    """A cell for each task and training; the ticket of the seed is written on the way."""
    cells = []
    shared = store.open(one.models[WITH])
    drawn = {name: read_draw(task_folder(shared, name)) for name in one.evaluations[WITH]}
    scores = {
        variant: {
            name: {on: read_scores(store.open(stage)) for on, stage in own.items()}
            for name, own in tasks.items()
        }
        for variant, tasks in one.evaluations.items()
    }
    place = f"tickets/seed-{one.seed}"
    for variant, model in one.models.items():
        for name in drawn:
            cells.append(
                {
                    "variant": variant,
                    "axes": {"task": name, "seed": one.seed},
                    "seed": one.seed,
                    "label": f"{variant}_task-{name}_seed-{one.seed}",
                    "precision": one.precision,
                    "scores": scores[variant][name],
                    "attacks": {},
                    "curves": {},
                    "mask": drawn[name] if variant == WITH else None,
                    "stages": {"model": model.key},
                    "seconds": sum(read_manifest(store.path(s))["made"]["seconds"] for s in model.road()),
                    "ticket": place if variant == WITH else None,
                }
            )
    info = {
        "base": {"name": one.recipe.model, "fingerprint": next(iter(drawn.values()))["base"]},
        "tasks": {
            name: {"task": task, "mask": drawn[name], "metrics": scores[WITH][name]}
            for task, name in zip(one.recipe.tasks, drawn, strict=True)
        },
        "precision": one.precision,
        "recipe": recipe,
        "provenance": {stage.key: stage.identity() for stage in one.models[WITH].road()},
    }
    if is_main():
        write_multi_task_ticket(folder / place, shared, info)
    return cells
