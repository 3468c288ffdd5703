"""The stages of a recipe for sharing: a ticket for each task, a training with and one without them, the scores."""

from dataclasses import dataclass
from itertools import chain

from tombola.pipeline import unique
from tombola.recipe import Cell, Raw
from tombola.road import Road
from tombola.search import SearchSettings, searches
from tombola.settings import checked
from tombola.sharing.recipe import ShareRecipe
from tombola.stages import kinds
from tombola.store import Stage
from tombola.tasks import Task
from tombola.tasks.targets import find_target
from tombola.training import resolve_precision

WITHOUT, WITH = "without tickets", "with tickets"


@dataclass(frozen=True)
class SharePlan:
    """What one seed of a recipe takes."""

    recipe: ShareRecipe
    seed: int
    precision: str
    models: dict[str, Stage]
    """The training without tickets, and the one with them."""
    evaluations: dict[str, dict[str, dict[str, Stage]]]
    """For each training, by task, the data sets that the task is scored on."""

    def stages(self) -> list[Stage]:
        """Every stage of the plan, each once, in an order in which they can run."""
        last = chain.from_iterable(
            own.values() for tasks in self.evaluations.values() for own in tasks.values()
        )
        return unique(stage for one in last for stage in one.road())


def plan(recipe: ShareRecipe, seed: int) -> SharePlan:
    """The plan of one seed."""
    precision = resolve_precision(recipe.precision)
    cells = [recipe.for_task(task, seed) for task in recipe.tasks]
    roads = [Road(cell.recipe, precision) for cell in cells]
    masks: dict[str, Stage] = {}
    for index, cell in enumerate(cells):
        search = _search(cell)
        if cell.recipe.draw.sparsity > 0:
            searching = Road(cell.source, precision) if cell.source else roads[index]
            masks[f"mask{index}"] = searches[search.method].plan(search, searching, cell.recipe.draw.sparsity)
    models = {
        WITHOUT: _train(recipe, seed, precision, roads, {}, None),
        WITH: _train(recipe, seed, precision, roads, masks, _search(cells[0]).units),
    }
    evaluations = {
        variant: {
            Task.named(road.recipe.task).name: {
                on: _evaluate(recipe, road, on, model) for on in recipe.evaluate.on
            }
            for road in roads
        }
        for variant, model in models.items()
    }
    return SharePlan(recipe, seed, precision, models, evaluations)


def _search(cell: Cell) -> SearchSettings:
    assert cell.recipe.search is not None, "a recipe for sharing always has a search"
    return cell.recipe.search


def _train(
    recipe: ShareRecipe,
    seed: int,
    precision: str,
    roads: list[Road],
    masks: dict[str, Stage],
    units: str | None,
) -> Stage:
    said = {
        "tasks": len(roads),
        "train": recipe.train.canonical(),
        "sampling": recipe.sampling.canonical(),
        "seed": seed,
        "precision": precision,
    }
    return Stage(
        kind="share",
        version=kinds["share"].version,
        settings=said if units is None else {**said, "units": units},
        inputs=masks,
        refs={"model": roads[0].origin, **{f"data{index}": road.data for index, road in enumerate(roads)}},
        unhashed={name: getattr(recipe.train, name) for name in sorted(recipe.train.unhashed)},
        label=f"train {len(roads)} tasks {WITHOUT if units is None else WITH}",
    )


def _evaluate(recipe: ShareRecipe, road: Road, on: str, model: Stage) -> Stage:
    name = Task.named(road.recipe.task).name
    return Stage(
        kind="evaluate_shared",
        version=kinds["evaluate_shared"].version,
        settings={"task": name, "max_length": recipe.train.max_length, "precision": road.precision},
        inputs={"model": model},
        refs={"data": road.split(on, road.recipe.data.evaluation), "trained": road.data},
        label=f"evaluate {name} on {on}",
    )


def check_share(raw: Raw) -> str:
    """Check a recipe for sharing without running it; a sentence that says what it is."""
    recipe: ShareRecipe = checked(ShareRecipe, raw)
    for task in recipe.tasks:
        recipe.for_task(task, recipe.seed[0])
        for on in recipe.evaluate.on:
            find_target(on, task)
    return f"a valid recipe to share {len(recipe.tasks)} tasks, {len(recipe.seed)} seed(s)"
