"""From a recipe to stages, and through them: the only place that knows all rooms."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tombola.recipe import Cell, Recipe, RetrainSettings
from tombola.search import SearchSettings, searches
from tombola.settings import Settings
from tombola.stages import Job, Progress, kinds
from tombola.stages.given import mask_ref
from tombola.stages.sources import data_ref, find_target, model_ref
from tombola.store import Ref, Stage, Store
from tombola.training import TrainSettings, resolve_precision


@dataclass(frozen=True)
class Plan:
    """What one cell of the grid takes: its final model, its mask, and its evaluations."""

    cell: Cell
    model: Stage
    mask: Stage | None
    evaluations: dict[str, Stage]
    precision: str

    def stages(self) -> list[Stage]:
        """Every stage of the plan, each once, in an order in which they can run."""
        return (
            unique(stage for last in self.evaluations.values() for stage in last.road()) or self.model.road()
        )


class Road:
    """Makes the stages of one cell. Equal questions give stages with equal keys, so each runs once."""

    def __init__(self, recipe: Recipe, precision: str) -> None:
        self.recipe = recipe
        self.precision = precision
        self.origin = model_ref(recipe.model)
        self.data = self.split("train", recipe.data.train)

    def split(self, on: str, limit: int | None) -> Ref:
        """The data that `on` means: a split of the recipe's task, or `task` or `task/split` of another."""
        data = self.recipe.data
        task, split = find_target(on, self.recipe.task)
        return data_ref(task, split, data.folder, limit, data.seed)

    def train(
        self,
        mask: Stage | None = None,
        start: Stage | None = None,
        head: Stage | None = None,
        stop_at: int | None = None,
        fresh_head: bool = False,
        settings: TrainSettings | None = None,
        control: Settings | None = None,
    ) -> Stage:
        """A training on the recipe's task."""
        settings = settings or self.recipe.train
        said: dict[str, Any] = {
            "train": _training_part(settings),
            "seed": self.recipe.seed,
            "precision": self.precision,
        }
        if stop_at is not None:
            said["stop_at"] = stop_at
        if fresh_head and start is not None:
            said["head"] = "fresh"
        if control is not None:
            said["control"] = control.model_dump(mode="json")
        return Stage(
            kind="train",
            version=kinds["train"].version,
            settings=said,
            inputs=_given(mask=mask, start=start, head=head),
            refs={"model": self.origin, "data": self.data},
            unhashed={name: getattr(settings, name) for name in sorted(settings.unhashed)},
            label="fine-tune" if mask is None else "train the ticket",
        )

    def draw(
        self,
        scorer: SearchSettings,
        sparsity: float,
        of: Stage | None = None,
        within: Stage | None = None,
    ) -> Stage:
        """A mask drawn from the scores of a model."""
        return Stage(
            kind="draw",
            version=kinds["draw"].version,
            settings={
                "search": scorer.model_copy(update={"task": None}).canonical(),
                "sparsity": sparsity,
                "scope": self.recipe.draw.scope,
                "seed": self.recipe.seed,
            },
            inputs=_given(of=of, within=within),
            refs={"model": self.origin, "data": self.data},
            label=f"draw {sparsity:.0%}",
        )

    def given(self, masks: Sequence[str], combine: str) -> Stage:
        """Masks from files, combined."""
        refs = {f"mask{index}": mask_ref(mask) for index, mask in enumerate(masks)}
        return Stage(
            kind="given",
            version=kinds["given"].version,
            settings={"combine": combine},
            refs={"model": self.origin, "data": self.data, **refs},
            label="take the mask",
        )

    def perturb(self, mask: Stage, share: float) -> Stage:
        """The mask with a share of its units swapped."""
        return Stage(
            kind="perturb",
            version=kinds["perturb"].version,
            settings={"share": share, "seed": self.recipe.seed},
            inputs={"mask": mask},
            label=f"perturb {share:.0%}",
        )

    def evaluate(self, on: str, model: Stage, mask: Stage | None) -> Stage:
        """A score of the model on one data set."""
        return Stage(
            kind="evaluate",
            version=kinds["evaluate"].version,
            settings={"max_length": self.recipe.train.max_length, "precision": self.precision},
            inputs=_given(model=model, mask=mask),
            refs={"data": self.split(on, self.recipe.data.evaluation), "trained": self.data},
            label=f"evaluate on {on}",
        )


def plan(cell: Cell) -> Plan:
    """The stages of one cell: search, draw, retrain, evaluate; a dense model where there is no search."""
    recipe = cell.recipe
    precision = resolve_precision(recipe.precision)
    road = Road(recipe, precision)
    mask: Stage | None = None
    if recipe.search is None:
        model = road.train()
    else:
        search_road = Road(cell.source, precision) if cell.source else road
        mask = searches[recipe.search.method].plan(recipe.search, search_road, recipe.draw.sparsity)
        if recipe.draw.perturb:
            mask = road.perturb(mask, recipe.draw.perturb)
        model = _retrain(road, mask, recipe.retrain)
    under = mask if recipe.search is not None and recipe.retrain is None else None
    evaluations = {on: road.evaluate(on, model, under) for on in recipe.evaluate.on}
    return Plan(cell, model, mask, evaluations, precision)


def _retrain(road: Road, mask: Stage, settings: RetrainSettings | None) -> Stage:
    if settings is None:
        return road.train()
    start = road.train() if settings.start == "finetuned" else None
    return road.train(mask=mask, start=start, settings=settings, control=settings.control)


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


def _training_part(settings: TrainSettings) -> dict[str, Any]:
    """The settings that a training shares with every other: what only a recipe's `retrain` says is left out."""
    said = settings.canonical()
    return {name: value for name, value in said.items() if name in TrainSettings.model_fields}


def _given(**inputs: Stage | None) -> dict[str, Stage]:
    return {name: stage for name, stage in inputs.items() if stage is not None}
