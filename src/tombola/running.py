"""`tombola.run`: a recipe in; tickets, scores and a table out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tombola.engines.ranks import is_main
from tombola.evaluation import Score
from tombola.housekeeping import keep
from tombola.once import reading_once
from tombola.phases import phases, places
from tombola.pipeline import Plan, execute, plan
from tombola.recipe import expand, load_recipe
from tombola.results import RESULTS, Result
from tombola.shipped import find_recipe
from tombola.stages import Progress
from tombola.stages.attack import read_attack
from tombola.stages.draw import read_draw
from tombola.stages.evaluate import read_scores
from tombola.stages.measure import read_measured
from tombola.stages.train import read_frozen
from tombola.store import Stage, Store, roads
from tombola.ticket import versions, write_ticket

Watch = Callable[[Stage, bool], Progress]


def run(
    recipe: Path | str | Mapping[str, Any],
    overrides: Iterable[str] = (),
    *,
    output: Path | str | None = None,
    store: Store | Path | str | None = None,
    tickets: bool = True,
    announce: Callable[[list[Stage], Store], None] = lambda stages, store: None,
    watch: Watch = lambda stage, found: lambda step, total: None,
    **settings: Any,
) -> Result:
    """Run a recipe: every cell of its grid, each shared stage once, and nothing that is finished already.

    `settings` and `overrides` ("draw.sparsity=0.5") change the recipe; a list makes a grid
    (`seed=[1, 2, 3]`). Tickets and `results.json` go to `output` (default: runs/NAME).
    """
    raw = load_recipe(find_recipe(recipe), overrides, **settings)
    store = store if isinstance(store, Store) else Store(store)
    with reading_once():
        plans = [plan(cell) for cell in expand(raw)]
        first = plans[0].cell.recipe
        folder = Path(output) if output is not None else Path("runs") / first.name
        stages = roads(stage for one in plans for stage in one.ends())
        if is_main():
            keep(store, folder / RESULTS, stages, finished=False)
            announce(stages, store)
        ran = execute(stages, store, watch)
        content = {
            **head(first.name, first.about, raw),
            "stages": {"all": len(stages), "run_now": ran},
            "cells": [collect(one, store, folder / "tickets" if tickets else None) for one in plans],
        }
    result = Result(content, folder)
    content["matching"] = decisions(result)
    content["phases"] = [phases(result, place=place) for place in places(result)]
    if is_main():
        result.save()
        keep(store, folder / RESULTS, stages, finished=True)
    return result


def head(name: str, about: str, recipe: Mapping[str, Any]) -> dict[str, Any]:
    """What every result begins with."""
    return {"format": 1, "name": name, "about": about, "recipe": recipe, "versions": versions()}


def decisions(result: Result) -> dict[str, list[dict[str, Any]]]:
    """For each data set, how sparse each variant can be and still match the dense model."""
    return {on: [asdict(one) for one in result.matching(on)] for on in result.targets}


def collect(one: Plan, store: Store, tickets: Path | None) -> dict[str, Any]:
    """What came out of one cell; its ticket is written on the way, if there is a place for it."""
    cell, recipe = one.cell, one.cell.recipe
    scores = {on: read_scores(store.open(stage)) for on, stage in one.evaluations.items()}
    attacks = {name: read_attack(store.open(stage)) for name, stage in one.attacks.items()}
    scores |= {name: {"under attack": _as_score(found)} for name, found in attacks.items()}
    drawn = read_draw(store.open(one.mask)) if one.mask else None
    collected = {
        "variant": cell.variant,
        "axes": cell.axes,
        "seed": recipe.seed,
        "label": cell.label,
        "precision": one.precision,
        "scores": scores,
        "attacks": attacks,
        "curves": {
            name: [read_attack(store.open(stage)) for stage in stages] for name, stages in one.curves.items()
        },
        "mask": drawn,
        "frozen": read_frozen(store.open(one.model)),
        "measured": read_measured(store.open(one.measured)) if one.measured else None,
        "stages": {
            "model": one.model.key,
            "mask": one.mask.key if one.mask else None,
            "evaluations": {on: stage.key for on, stage in one.evaluations.items()},
            "attacks": {name: stage.key for name, stage in one.attacks.items()},
        },
        "data": {on: dict(stage.refs["data"].where) for on, stage in one.evaluations.items()},
        "seconds": sum(store.seconds(stage) for stage in one.stages()),
        "ticket": None,
    }
    if one.mask is not None and drawn is not None and tickets is not None and is_main():
        info = {
            "base": {"name": recipe.model, "fingerprint": drawn["base"]},
            "mask": drawn,
            "metrics": scores,
            "precision": one.precision,
            "recipe": cell.raw(),
            "provenance": {stage.key: stage.identity() for stage in one.model.road()},
        }
        write_ticket(tickets / cell.label, store.open(one.model), store.open(one.mask), info)
        collected["ticket"] = f"tickets/{cell.label}"
    return collected


def _as_score(attack: dict[str, Any]) -> dict[str, Any]:
    """Accuracy under attack as a score like any other, so that tables and decisions treat it alike."""
    share, n = attack["accuracy_under_attack"], attack["n"]
    return Score(share, (share * (1 - share) / n) ** 0.5, n, "binomial").as_dict()
