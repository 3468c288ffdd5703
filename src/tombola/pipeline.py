"""From a recipe to stages, and through them: the only place that knows all rooms."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain

from tombola.engines.work import work
from tombola.recipe import Cell
from tombola.recipe_parts import RetrainSettings
from tombola.road import Road
from tombola.search import searches
from tombola.stages import Progress
from tombola.store import Stage, Store, roads
from tombola.tasks.targets import all_targets
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
    measured: Stage | None
    """Its size and speed, where the recipe asks for them."""

    def stages(self) -> list[Stage]:
        """Every stage of the plan, each once, in an order in which they can run."""
        return roads(self.ends())

    def ends(self) -> list[Stage]:
        """The model, and what is asked about it: all that the other stages are there for."""
        judged = [*self.evaluations.values(), *self.attacks.values(), *chain(*self.curves.values())]
        return [self.model, *judged, *([self.measured] if self.measured else [])]


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
        evaluations={
            on: road.evaluate(on, model, under) for on in all_targets(recipe.evaluate.on, recipe.task)
        },
        attacks={name: road.attack(name, model, under) for name in attacks},
        curves={
            name: [road.attack(name, model, under, epoch) for epoch in epochs] for name in attacks if curve
        },
        measured=road.measure(model, mask) if recipe.measure else None,
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
        assert road.recipe.search is not None
        return road.train(stop_at=road.recipe.search.starts_at, keep_epochs=keep_epochs)
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
        if not found:
            ran += work(stage, store, progress)
    return ran


def unique(stages: Iterable[Stage]) -> list[Stage]:
    """Each stage once, in the order of first appearance."""
    return list({stage.key: stage for stage in stages}.values())
