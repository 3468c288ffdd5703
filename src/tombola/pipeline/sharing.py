"""Plan a recipe for sharing: a ticket for each task, trainings with and without tickets, controls, and the scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tombola.errors import RecipeError
from tombola.foundations.caching import run_cache, shared, sharing
from tombola.foundations.hardware import Precision, resolve_precision
from tombola.pipeline.builder import CellBuilder
from tombola.pipeline.plan import Plan
from tombola.pipeline.planner import CellPlan, plan_search
from tombola.pipeline.stages.base import MaskStage
from tombola.pipeline.stages.random_mask import RandomMask
from tombola.pipeline.stages.share import EvaluateShared, Share
from tombola.recipe.cell import Cell
from tombola.recipe.reading import Raw
from tombola.recipe.share import ShareRecipe, check_share, has_ticket
from tombola.search.importance import Importance
from tombola.tasks import kind_of
from tombola.tasks.targets import all_targets

WITHOUT, WITH = "without tickets", "with tickets"
RANDOM, ALONE = "with random tickets", "alone"
CONTROLS = (RANDOM, ALONE)
"""The variants that a recipe's `controls` add; they are scored, but no tickets or models are written."""

Masks = tuple[MaskStage | None, ...]
"""The mask of every task; None for a task that keeps everything."""


def plan_share(raw: Raw) -> Plan:
    """Plan all trainings for every seed of a recipe for sharing."""
    recipe = check_share(raw)
    precision = resolve_precision(recipe.precision)
    with run_cache() as cache, sharing():
        cells = [cell for seed in recipe.seed for cell in _plan_seed(recipe, seed, precision)]
        plan = Plan(recipe.name, recipe.about, raw, cells, cache)
        plan.stages  # noqa: B018  computed here, where files are read once
    return plan


def _plan_seed(recipe: ShareRecipe, seed: int, precision: Precision) -> list[CellPlan]:
    """Plan a cell for each variant and task of one seed."""
    tasks = [_Task.of(recipe.for_task(task, seed), precision) for task in recipe.tasks]
    for task in tasks:
        if not kind_of(task.builder.data.definition).label_logits:
            raise RecipeError(
                f"tasks: {task.name} is scored by likelihood, but tasks that share an encoder need a classification "
                "head each: remove `by: likelihood` from the task's settings, or leave the task out"
            )
    masks = tuple(task.mask() for task in tasks)
    if any(task.cell.recipe.search is not None and task.cell.recipe.search.classifier for task in tasks):
        raise RecipeError("search.classifier: every task has its own head, so none is shared; leave it out")
    variants: dict[str, Masks] = {WITHOUT: (), WITH: masks}
    if "random" in recipe.controls:
        variants[RANDOM] = tuple(
            task.random_mask(mask, number) if mask is not None else None
            for number, (task, mask) in enumerate(zip(tasks, masks, strict=True))
        )
    planned = []
    for variant, variant_masks in variants.items():
        model = _train(recipe, seed, tasks, variant_masks)
        of_tasks = variant_masks or (None,) * len(tasks)
        planned += [
            task.scored(variant, model, mask, recipe.train.max_length)
            for task, mask in zip(tasks, of_tasks, strict=True)
        ]
    if "alone" in recipe.controls:
        planned += [task.alone() for task in tasks]
    return planned


def _train(recipe: ShareRecipe, seed: int, tasks: list[_Task], masks: Masks) -> Share:
    search = tasks[0].cell.recipe.search
    assert search is not None, "a recipe for sharing always has a search"
    return Share(
        model=tasks[0].builder.model,
        data=tuple(task.builder.data for task in tasks),
        train=recipe.train,
        sampling=recipe.sampling,
        seed=seed,
        precision=tasks[0].builder.precision,
        masks=masks,
        units=search.units if masks else None,
    )


@dataclass(frozen=True)
class _Task:
    """One task of one seed: its recipe, and the builder of its stages."""

    cell: Cell
    builder: CellBuilder

    @classmethod
    def of(cls, cell: Cell, precision: Precision) -> _Task:
        return cls(cell, CellBuilder(cell.recipe, precision))

    def mask(self) -> MaskStage | None:
        """Plan the task's ticket, if it has one."""
        return plan_search(self.cell, self.builder).mask if has_ticket(self.cell.recipe) else None

    def random_mask(self, mask: MaskStage, number: int) -> RandomMask:
        """Plan a random ticket of the same size; a different one for every number, as tasks differ."""
        search = self.cell.recipe.search
        min_heads = search.min_heads if isinstance(search, Importance) else None
        return shared(RandomMask, mask=mask, seed=self.cell.recipe.seed, number=number, min_heads=min_heads)

    def scored(self, variant: str, model: Share, mask: MaskStage | None, max_length: int) -> CellPlan:
        """Plan the scores of the task in a shared training."""
        evaluations = {
            on: EvaluateShared(
                model=model,
                task=self.name,
                data=self.builder.split(on, self.builder.recipe.data.evaluation),
                trained=self.builder.data,
                max_length=max_length,
                precision=self.builder.precision,
            )
            for on in self._targets
        }
        return CellPlan(self._cell_of(variant), self.builder.precision, model, mask, dict(evaluations))

    def alone(self) -> CellPlan:
        """Plan the scores of the task's single fine-tuning, which most searches draw the ticket from anyway."""
        model = self.builder.train()
        evaluations = {on: self.builder.evaluate(on, model, None) for on in self._targets}
        return CellPlan(self._cell_of(ALONE), self.builder.precision, model, None, dict(evaluations))

    @property
    def name(self) -> str:
        """The task's name."""
        return self.builder.data.definition.name

    @property
    def _targets(self) -> list[str]:
        return all_targets(self.cell.recipe.evaluate.on, self.cell.recipe.task)

    def _cell_of(self, variant: str) -> Cell:
        return replace(self.cell, variant=variant, axes={"task": self.name, "seed": self.cell.recipe.seed})
