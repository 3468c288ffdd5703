"""From a recipe to stages, and through them: the only place that knows all rooms."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tombola.recipe import Cell, RetrainSettings
from tombola.road import Road
from tombola.search import searches
from tombola.stages import Job, Progress, kinds
from tombola.store import Stage, Store
from tombola.training import resolve_precision


@dataclass(frozen=True)
class Plan:
    """What one cell of the grid takes: its final model, its mask, its evaluations and the attacks on it."""

    cell: Cell
    precision: str
    model: Stage
    mask: Stage | None
    evaluations: dict[str, Stage]
    attacks: dict[str, Stage]
    curves: dict[str, list[Stage]]
    """For each attack, the attacks on the model of every epoch, where the recipe asks for them."""

    def stages(self) -> list[Stage]:
        """Every stage of the plan, each once, in an order in which they can run."""
        last = [self.model, *self.evaluations.values(), *self.attacks.values(), *chain(*self.curves.values())]
        return unique(stage for one in last for stage in one.road())


def plan(cell: Cell) -> Plan:
    """The stages of one cell: search, draw, retrain, evaluate, attack; a dense model where there is no search."""
    recipe = cell.recipe
    precision = resolve_precision(recipe.precision)
    road = Road(recipe, precision)
    curve = recipe.attack is not None and recipe.attack.every_epoch
    mask: Stage | None = None
    if recipe.search is None:
        model, trained = road.train(keep_epochs=curve), recipe.train
    else:
        mask = _search(cell, road, precision)
        model, trained = _retrain(road, mask, recipe.retrain, curve), recipe.retrain or recipe.train
    under = mask if recipe.retrain is None else None
    attacks = recipe.attack.recipes if recipe.attack else []
    epochs = range(1, int(trained.epochs) + 1) if curve else ()
    return Plan(
        cell,
        precision,
        model,
        mask,
        evaluations={on: road.evaluate(on, model, under) for on in recipe.evaluate.on},
        attacks={name: road.attack(name, model, under) for name in attacks},
        curves={
            name: [road.attack(name, model, under, epoch) for epoch in epochs] for name in attacks if curve
        },
    )


def _search(cell: Cell, road: Road, precision: str) -> Stage:
    """The mask: searched on the recipe's own task, or on another whose mask is transferred."""
    recipe = cell.recipe
    assert recipe.search is not None
    searching = Road(cell.source, precision) if cell.source else road
    mask = searches[recipe.search.method].plan(recipe.search, searching, recipe.draw.sparsity)
    return road.perturb(mask, recipe.draw.perturb) if recipe.draw.perturb else mask


def _retrain(road: Road, mask: Stage, settings: RetrainSettings | None, keep_epochs: bool) -> Stage:
    if settings is None:
        return road.train(keep_epochs=keep_epochs)
    start = road.train() if settings.start == "finetuned" else None
    return road.train(
        mask=mask, start=start, settings=settings, control=settings.control, keep_epochs=keep_epochs
    )


def execute(
    stages: Iterable[Stage],
    store: Store,
    watch: Callable[[Stage, bool], Progress] = lambda stage, done: lambda step, total: None,
) -> int:
    """Run what is not finished yet, in order; the number of stages that ran now.

    `watch` is told of every stage, with whether it was found finished, and gives a function that is told
    of its progress.
    """
    ran = 0
    for stage in stages:
        found = store.has(stage)
        progress = watch(stage, found)
        if found:
            continue

        def run(folder: Path, stage: Stage = stage, progress: Progress = progress) -> None:
            inputs = {name: store.open(before) for name, before in stage.inputs.items()}
            kinds[stage.kind].run(Job(stage, folder, inputs, progress))

        ran += store.make(stage, run)
    return ran


def unique(stages: Iterable[Stage]) -> list[Stage]:
    """Each stage once, in the order of first appearance."""
    return list({stage.key: stage for stage in stages}.values())
