"""Plan a recipe for sharing: a ticket for each task, a training with and one without tickets, and the scores."""

from __future__ import annotations

from dataclasses import replace

from tombola.errors import RecipeError
from tombola.foundations.caching import run_cache, sharing
from tombola.foundations.hardware import Precision, resolve_precision
from tombola.pipeline.builder import StageBuilder
from tombola.pipeline.plan import Plan
from tombola.pipeline.planner import CellPlan, plan_search
from tombola.pipeline.stages.base import MaskStage
from tombola.pipeline.stages.share import EvaluateShared, Share
from tombola.recipe.cell import Cell
from tombola.recipe.reading import Raw
from tombola.recipe.recipe import Recipe
from tombola.recipe.share import ShareRecipe, check_share
from tombola.search.given import Given
from tombola.tasks.targets import all_targets

WITHOUT, WITH = "without tickets", "with tickets"


def plan_share(raw: Raw) -> Plan:
    """Plan both trainings for every seed of a recipe for sharing."""
    recipe = check_share(raw)
    precision = resolve_precision(recipe.precision)
    with run_cache() as cache, sharing():
        cells = [cell for seed in recipe.seed for cell in _plan_seed(recipe, seed, precision)]
        plan = Plan(recipe.name, recipe.about, raw, cells, cache)
        plan.stages  # noqa: B018  computed here, where files are read once
    return plan


def _plan_seed(recipe: ShareRecipe, seed: int, precision: Precision) -> list[CellPlan]:
    """Plan a cell for each training and task of one seed."""
    cells = [recipe.for_task(task, seed) for task in recipe.tasks]
    builders = [StageBuilder(cell.recipe, precision) for cell in cells]
    masks = tuple(
        plan_search(cell, builder).mask if _has_ticket(cell.recipe) else None
        for cell, builder in zip(cells, builders, strict=True)
    )
    searches = [cell.recipe.search for cell in cells]
    search = searches[0]
    assert search is not None, "a recipe for sharing always has a search"
    if any(one is not None and one.classifier for one in searches):
        raise RecipeError("search.classifier: every task has its own head, so none is shared; leave it out")
    without = _train(recipe, seed, precision, builders, (), None)
    shared = _train(recipe, seed, precision, builders, masks, search.units)
    return [
        *(
            _plan_task(recipe, WITHOUT, cell, builder, without, None)
            for cell, builder in zip(cells, builders, strict=True)
        ),
        *(
            _plan_task(recipe, WITH, cell, builder, shared, mask)
            for cell, builder, mask in zip(cells, builders, masks, strict=True)
        ),
    ]


def _has_ticket(recipe: Recipe) -> bool:
    """Return whether a task has a ticket: its mask is given, or removes units."""
    if isinstance(recipe.search, Given):
        return True
    return any(recipe.draw.counts.values()) if recipe.draw.counts is not None else recipe.draw.sparsity > 0


def _train(
    recipe: ShareRecipe,
    seed: int,
    precision: Precision,
    builders: list[StageBuilder],
    masks: tuple[MaskStage | None, ...],
    units: str | None,
) -> Share:
    return Share(
        model=builders[0].model,
        data=tuple(builder.data for builder in builders),
        train=recipe.train,
        sampling=recipe.sampling,
        seed=seed,
        precision=precision,
        masks=masks,
        units=units,
    )


def _plan_task(
    recipe: ShareRecipe,
    variant: str,
    cell: Cell,
    builder: StageBuilder,
    model: Share,
    mask: MaskStage | None,
) -> CellPlan:
    task = builder.data.definition.name
    evaluations = {
        on: EvaluateShared(
            model=model,
            task=task,
            data=builder.split(on, builder.recipe.data.evaluation),
            trained=builder.data,
            max_length=recipe.train.max_length,
            precision=builder.precision,
        )
        for on in all_targets(cell.recipe.evaluate.on, cell.recipe.task)
    }
    axes = {"task": task, "seed": cell.recipe.seed}
    own = replace(cell, variant=variant, axes=axes)
    return CellPlan(own, builder.precision, model, mask, dict(evaluations))
