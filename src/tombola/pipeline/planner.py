"""Plan the stages of a recipe's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from tombola.foundations.caching import cached_in_run
from tombola.foundations.hardware import Precision, resolve_precision
from tombola.pipeline.amounts import check_draw
from tombola.pipeline.builder import CellBuilder
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.attack import AttackStage
from tombola.pipeline.stages.base import MaskStage, ModelStage
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.stages.evaluate import EvaluateStage
from tombola.pipeline.stages.export import OnnxStage
from tombola.pipeline.stages.measure import Measure
from tombola.pipeline.stages.prune import Prune
from tombola.pipeline.stages.score import UnitScores
from tombola.pipeline.stages.search import SearchStage
from tombola.pipeline.stages.share import Share
from tombola.pipeline.stages.train import Train
from tombola.recipe.cell import Cell
from tombola.recipe.sections import RetrainSettings, WantedPrecision
from tombola.search import Found, SearchSettings, searches
from tombola.store.stage import Stage, topological_order
from tombola.tasks.targets import all_targets


@dataclass(frozen=True)
class CellPlan:
    """The stages of one cell of a grid: its final model, its mask, and their evaluations and measurements."""

    cell: Cell
    precision: Precision
    model: ModelStage[Any] | Share
    mask: MaskStage | None
    evaluations: dict[str, EvaluateStage]
    attacks: dict[str, AttackStage] = field(default_factory=dict)
    curves: dict[str, list[AttackStage]] = field(default_factory=dict)
    """For each attack, the attacks on the model of every epoch, if the recipe requests them."""
    measured: Measure | None = None
    exported: OnnxStage | None = None
    """The exported ONNX model, if that is evaluated."""

    def stages(self) -> list[Stage[Any]]:
        """Return every stage of the cell, each once, in an order in which they can run."""
        return topological_order(self.ends())

    def ends(self) -> Iterator[Stage[Any]]:
        """Yield the final stages of the cell, which require all others: model, mask, evaluations and the like."""
        yield self.model
        if self.mask is not None:
            yield self.mask
        yield from self.evaluations.values()
        yield from self.attacks.values()
        yield from chain.from_iterable(self.curves.values())
        if self.measured is not None:
            yield self.measured
        if self.exported is not None:
            yield self.exported


def plan_cell(cell: Cell) -> CellPlan:
    """Plan the stages of one cell: search, draw, retrain, evaluate, attack; without a search, a dense model."""
    recipe = cell.recipe
    precision = _precision(recipe.precision)
    builder = CellBuilder(recipe, precision)
    curve = recipe.attack is not None and recipe.attack.every_epoch
    found: Found | None = None
    model: ModelStage[Any]
    if recipe.search is None:
        model = builder.train(keep_epochs=curve, last=True)
    else:
        found = plan_search(cell, builder)
        model = _retrain(builder, found, recipe.retrain, keep_epochs=curve)
    mask = found.mask if found else None
    unapplied = mask if recipe.retrain is None else None
    exported = builder.export(model, mask)
    evaluated: ModelStage[Any] = exported or model
    if exported is not None:
        unapplied = None
    also_trained = tuple(data for data in training_data(found.mask) if data != builder.data) if found else ()
    attacks = recipe.attack.chosen() if recipe.attack else {}
    epochs = range(1, model.whole_epochs() + 1) if curve and isinstance(model, Train) else ()
    return CellPlan(
        cell,
        precision,
        model,
        mask,
        evaluations={
            on: builder.evaluate(on, evaluated, unapplied, also_trained)
            for on in all_targets(recipe.evaluate.on, recipe.task)
        },
        attacks={name: builder.attack(attack, evaluated, unapplied) for name, attack in attacks.items()},
        curves={
            name: [builder.attack(attack, model, unapplied, epoch) for epoch in epochs]
            for name, attack in attacks.items()
            if curve
        },
        measured=builder.measure(model, mask, exported) if recipe.measure else None,
        exported=exported,
    )


@cached_in_run
def _precision(wanted: WantedPrecision) -> Precision:
    return resolve_precision(wanted)


@cached_in_run
def _check_model(search: SearchSettings, model: ModelSource) -> None:
    search.check_model(model.config())


def training_data(stage: Stage[Any]) -> list[DataSource]:
    """Return all data that a stage and its inputs have seen, in trainings, searches and scorers that read data."""
    sources = [
        node.data
        for node in stage.with_inputs()
        if isinstance(node, Train | SearchStage | Prune)
        or (isinstance(node, UnitScores | Draw) and node.search.reads_data)
    ]
    return list({data.fingerprint: data for data in sources}.values())


def plan_search(cell: Cell, builder: CellBuilder) -> Found:
    """Plan the search on the recipe's own task, or on another task whose mask is transferred."""
    recipe = cell.recipe
    assert recipe.search is not None
    _check_model(recipe.search, builder.model)
    check_draw(recipe, builder.model, builder.data)
    search = (cell.source or recipe).search
    assert search is not None
    searching = CellBuilder(cell.source, builder.precision) if cell.source else builder
    found = searches[search.method].plan(search, searching, recipe.draw.sparsity)
    if recipe.draw.perturb:
        found = replace(found, mask=builder.perturb(found.mask, recipe.draw.perturb))
    if cell.source is not None:  # only the mask is transferred: weights and head belong to another task
        return Found(found.mask)
    return found


def _retrain(
    builder: CellBuilder, found: Found, settings: RetrainSettings | None, keep_epochs: bool
) -> ModelStage[Any]:
    """Return the final training under the mask, or the weights that the mask was found on."""
    if settings is None:
        search = builder.recipe.search
        assert search is not None
        if isinstance(found.trained, Train):
            return replace(found.trained, keep_epochs=keep_epochs)
        return found.trained or builder.train(stop_at=search.starts_at, keep_epochs=keep_epochs)
    start, head, fresh_head = found.start, found.head, found.fresh_head
    if found.cut_by is not None:
        small = builder.shrink(found.mask, of=found.trained, within=found.cut_by)
        return builder.train(
            start=small, settings=settings, control=settings.control, keep_epochs=keep_epochs, last=True
        )
    if settings.start == "pretrained":
        start = head = None
    elif settings.start == "finetuned":
        start, head, fresh_head = builder.train(), None, 0
    elif settings.start in ("last_round", "searched"):
        start, head, fresh_head = found.trained or builder.train(), None, 0
    return builder.train(
        mask=None if settings.shrink else found.mask,
        start=builder.shrink(found.mask, of=start) if settings.shrink else start,
        head=head,
        fresh_head=fresh_head,
        settings=settings,
        control=settings.control,
        keep_epochs=keep_epochs,
        last=True,
    )
