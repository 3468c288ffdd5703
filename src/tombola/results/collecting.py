"""Collect the results of all cells from finished stages, and write their tickets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tombola.evaluation.scores import Score
from tombola.foundations.folders import portable, public_name, with_tilde
from tombola.foundations.hardware import describe_machine
from tombola.foundations.paths import path_part
from tombola.foundations.versions import versions
from tombola.masks import MASK, Mask
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan
from tombola.pipeline.planner import CellPlan
from tombola.pipeline.references import ModelSource
from tombola.pipeline.sharing import CONTROLS
from tombola.pipeline.stages.attack import Attacked
from tombola.pipeline.stages.base import Drawn, cut_of
from tombola.pipeline.stages.course import ScoreCourse
from tombola.pipeline.stages.export import Quantise
from tombola.pipeline.stages.fit import FitStage
from tombola.pipeline.stages.share import Share
from tombola.pipeline.stages.shrink import Shrink
from tombola.pipeline.stages.train import Train
from tombola.pipeline.watching import Outcome
from tombola.recipe.claims import Claim
from tombola.results.record import (
    UNDER_ATTACK,
    CellResult,
    CellStages,
    ChosenStep,
    CoursePoint,
    FailureRecord,
    RunRecord,
    StageCounts,
)
from tombola.results.run_folder import RunFolder, cell_key, recipe_hash
from tombola.store.store import Store
from tombola.tickets.multitask import write_multi_task_ticket
from tombola.tickets.saved import task_file
from tombola.tickets.ticket import write_ticket


def collect(plan: Plan, outcome: Outcome, store: Store, folder: RunFolder, *, tickets: bool) -> RunRecord:
    """Return the record of a run.

    Args:
        plan: The plan that was run.
        outcome: How it ended. Cells that need a failed stage are left out.
        store: The store of finished stages.
        folder: The folder of the result and its tickets.
        tickets: Whether to write tickets and dense models.
    """
    missing = outcome.unfinished
    complete = [cell for cell in plan.cells if not missing or not _needs(cell, missing)]
    cells = [_collect_cell(cell, store) for cell in complete]
    if tickets and is_main():
        cells = _write_tickets(plan, complete, cells, store, folder)
    return RunRecord(
        name=plan.name,
        about=plan.about,
        date=date.today().isoformat(),
        recipe=portable(plan.recipe),
        recipe_hash=recipe_hash(plan.recipe),
        versions=versions(),
        machine=describe_machine(),
        stages=StageCounts(all=len(plan.stages), run_now=len(outcome.ran)),
        cells=cells,
        failures=_failures(plan, outcome),
        claims={name: Claim(**portable(claim.model_dump())) for name, claim in plan.claims.items()},
    )


def _collect_cell(plan: CellPlan, store: Store) -> CellResult:
    """Return the result of one cell."""
    attacks = {name: store.read(stage) for name, stage in plan.attacks.items()}
    evaluated = {portable(on): store.read(stage) for on, stage in plan.evaluations.items()}
    scores = {on: evaluation.scores for on, evaluation in evaluated.items()}
    scores |= {name: {UNDER_ATTACK: attack_score(attacked)} for name, attacked in attacks.items()}
    trained = store.read(plan.model) if isinstance(plan.model, Train) else None
    return CellResult(
        variant=plan.cell.variant,
        axes=portable(plan.cell.axes),
        seed=plan.cell.recipe.seed,
        label=with_tilde(plan.cell.label),
        precision=plan.precision,
        recipe=portable(plan.cell.raw()),
        scores=scores,
        constants={
            on: evaluation.constant for on, evaluation in evaluated.items() if evaluation.constant is not None
        },
        attacks=attacks,
        curves={name: [store.read(stage) for stage in stages] for name, stages in plan.curves.items()},
        mask=store.read(plan.mask) if plan.mask else None,
        fitted=plan.mask.fitted(store.open(plan.mask)) if isinstance(plan.mask, FitStage) else None,
        frozen=trained.frozen if trained else None,
        course=_course(trained.course, list(evaluated)) if trained and trained.course else {},
        chosen=_chosen(trained.course, str(plan.cell.recipe.evaluate.best))
        if trained and trained.course
        else None,
        measured=store.read(plan.measured) if plan.measured else None,
        stages=CellStages(
            model=plan.model.name,
            mask=plan.mask.name if plan.mask else None,
            evaluations={portable(on): stage.name for on, stage in plan.evaluations.items()},
            attacks={name: stage.name for name, stage in plan.attacks.items()},
            measured=plan.measured.name if plan.measured else None,
        ),
        notes=list(dict.fromkeys(note for evaluation in evaluated.values() for note in evaluation.notes)),
        seconds=sum(store.seconds(stage) for stage in plan.stages()),
    )


def _course(course: ScoreCourse, names: list[str]) -> dict[str, list[CoursePoint]]:
    """Return the scores during training by data set; empty if they only served to choose a step."""
    if not course.points[0].scores:
        return {}
    return {
        on: [
            CoursePoint(step=point.step, epoch=point.epoch, scores=point.scores[place])
            for point in course.points
        ]
        for place, on in enumerate(names)
    }


def _chosen(course: ScoreCourse, on: str) -> ChosenStep | None:
    chosen = next((point for point in course.points if point.step == course.chosen), None)
    if chosen is None or chosen.choice is None:
        return None
    return ChosenStep(step=chosen.step, epoch=chosen.epoch, on=on, score=chosen.choice)


def attack_score(attacked: Attacked) -> Score:
    """Return the accuracy under attack as an ordinary score for tables and decisions."""
    return Score.of_share(attacked.accuracy_under_attack, attacked.n)


def _needs(cell: CellPlan, missing: set[str]) -> bool:
    return any(stage.key in missing for stage in cell.stages())


def _failures(plan: Plan, outcome: Outcome) -> list[FailureRecord]:
    if not outcome.failures:
        return []
    keys = [(cell.cell.label, {stage.key for stage in cell.stages()}) for cell in plan.cells]
    return [
        FailureRecord(
            stage=failure.stage.name,
            label=failure.stage.label,
            reason=with_tilde(failure.reason),
            log=portable(str(failure.log)),
            cells=[label for label, needed in keys if failure.stage.key in needed],
        )
        for failure in outcome.failures
    ]


def _write_tickets(
    plan: Plan, planned: list[CellPlan], cells: list[CellResult], store: Store, folder: RunFolder
) -> list[CellResult]:
    """Write a ticket for each cell with a mask and each shared training with masks, and the models of dense cells.

    Controls of a shared training are left out: they stay in the store.
    """
    places, written, placed = folder.places(), set[str](), []
    for cell_plan, cell in zip(planned, cells, strict=True):
        name, former = path_part(cell.label), places.get(cell_key(cell.variant, cell.recipe))
        if cell.variant in CONTROLS and isinstance(plan.cells[0].model, Share):
            placed.append(cell)
        elif isinstance(cell_plan.model, Share):
            place = f"tickets/seed-{cell.seed}" if cell_plan.model.masks else None
            if place is not None and place not in written:
                _write_shared(plan, cell_plan.model, planned, cells, store, folder.path / place)
                written.add(place)
            placed.append(cell.model_copy(update={"ticket": place}))
        elif cell_plan.mask is not None:
            place = former or f"tickets/{name}"
            write_cell(cell_plan, cell, store, folder.path / place)
            placed.append(cell.model_copy(update={"ticket": place}))
        else:
            place = former or f"models/{name}"
            about = {**_about_model(cell_plan, cell), "mask": None}
            files = {**onnx_files([cell_plan], store), **task_file(cell_plan.cell.recipe.task)}
            write_ticket(folder.path / place, store.open(cell_plan.model), None, about, files)
            placed.append(cell.model_copy(update={"model": place}))
    return placed


def _about_model(plan: CellPlan, cell: CellResult) -> dict[str, Any]:
    """Return the metadata of a cell's model, without its mask."""
    recipe = plan.cell.recipe
    return {
        "base": {
            "name": public_name(recipe.model),
            "fingerprint": ModelSource.find(recipe.model, recipe.pooler).fingerprint,
        },
        "metrics": _metrics(cell),
        "precision": plan.precision,
        "recipe": cell.recipe,
        "provenance": {stage.key: portable(stage.identity()) for stage in plan.model.with_inputs()},
    }


def write_cell(
    plan: CellPlan,
    cell: CellResult,
    store: Store,
    folder: Path,
    beside: Mapping[str, Path] = MappingProxyType({}),
    model: str | None = None,
    sections: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the ticket of a cell with a mask, with its task file and the ONNX files that it is scored with.

    `beside` names further files; `model` and `sections` of the recipe replace the cell's in the ticket's metadata.
    """
    assert plan.mask is not None
    assert cell.mask is not None
    info = {
        **_about_model(plan, cell),
        "base": {"name": public_name(model or plan.cell.recipe.model), "fingerprint": cell.mask.base},
        "mask": cell.mask.model_dump(mode="json"),
        "recipe": {**cell.recipe, **portable(dict(sections))},
    }
    cut = cut_of(plan.model)
    if isinstance(cut, Shrink):
        info["cut"] = store.read(cut).model_dump(mode="json")
    if cell.measured is not None and cell.measured.speedup:
        info["speedup"] = {size: found.model_dump() for size, found in cell.measured.speedup.items()}
    beside = {**onnx_files([plan], store), **task_file(plan.cell.recipe.task), **beside}
    write_ticket(folder, store.open(plan.model), store.open(plan.mask), info, beside)


def onnx_files(plans: Iterable[CellPlan], store: Store) -> dict[str, Path]:
    """Return the ONNX files that cells are scored with, and those that they are quantised from, by name."""
    exported = [plan.exported for plan in plans if plan.exported is not None]
    exported += [stage.exported for stage in exported if isinstance(stage, Quantise)]
    return {file.name: file for stage in exported for file in store.open(stage).glob(f"{stage.graph}*")}


def _write_shared(
    plan: Plan, model: Share, planned: list[CellPlan], cells: list[CellResult], store: Store, folder: Path
) -> None:
    trained_cells = [
        (planned_cell, cell)
        for planned_cell, cell in zip(planned, cells, strict=True)
        if planned_cell.model is model
    ]
    first = trained_cells[0][0].cell.recipe
    trained = store.open(model)
    masks = {
        cell.label: cell.mask or _full_mask(trained, one.cell.axes["task"]) for one, cell in trained_cells
    }
    info = {
        "base": {"name": public_name(first.model), "fingerprint": next(iter(masks.values())).base},
        "tasks": {
            one.cell.axes["task"]: {
                "task": portable(one.cell.recipe.task),
                "mask": masks[cell.label].model_dump(mode="json"),
                "metrics": _metrics(cell),
            }
            for one, cell in trained_cells
        },
        "precision": trained_cells[0][0].precision,
        "recipe": {**portable(plan.recipe), "seed": first.seed},
        "provenance": {stage.key: portable(stage.identity()) for stage in model.with_inputs()},
    }
    files = {one.cell.axes["task"]: task_file(one.cell.recipe.task) for one, _ in trained_cells}
    write_multi_task_ticket(folder, trained, info, files)


def _full_mask(trained: Path, task: str) -> Drawn:
    """Return the mask, saved by the shared training, of a task that keeps all parameters."""
    from tombola.training.multitask.model import open_task, task_folder

    mask = Mask.load(task_folder(trained, task) / MASK)
    return Drawn.of(mask, open_task(trained, task).num_parameters())


def _metrics(cell: CellResult) -> dict[str, dict[str, dict[str, object]]]:
    return {
        on: {name: score.as_dict() for name, score in scores.items()} for on, scores in cell.scores.items()
    }
