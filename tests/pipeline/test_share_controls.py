"""The controls of `tombola share`, random tickets and single tasks, and its new pooler."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import tombola
from tests.pipeline.running import execute, workspace
from tests.world import World
from tombola.cli import app
from tombola.errors import RecipeError
from tombola.masks import Mask
from tombola.pipeline.plan import Plan
from tombola.pipeline.planner import CellPlan
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT, plan_share
from tombola.pipeline.stages.base import MaskStage
from tombola.pipeline.stages.share import Share
from tombola.pipeline.stages.train import Train
from tombola.results.result import Result
from tombola.store.store import Store
from tombola.tickets.multitask import MultiTaskTicket

BOTH = {"controls": ["random", "alone"]}


@pytest.fixture(scope="module")
def tasks(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The world's task, and the same under another name."""
    folder = tmp_path_factory.mktemp("again")
    for split in ("train", "validation", "other"):
        shutil.copy(world.task.with_name(f"{split}.tsv"), folder)
    other = folder / "again.yaml"
    other.write_text(world.task.read_text().replace("name: tiny", "name: again"))
    return [str(world.task), str(other)]


@pytest.fixture(scope="module")
def recipe(world: World, tasks: list[str]) -> dict[str, Any]:
    return {
        "name": "controlled",
        "model": str(world.model),
        "tasks": tasks,
        "seed": [1, 2],
        "precision": "fp32",
        "data": {"train": 64},
        "train": {"epochs": 2, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16},
        "single": {"epochs": 1},
        "search": {"method": "importance", "units": "head+ffn"},
        "sparsity": 0.5,
    }


@pytest.fixture(scope="module")
def ran(recipe: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("controls")
    return tombola.share({**recipe, **BOTH}, output=folder / "out", store=folder / "store"), folder


def of(plan: Plan, variant: str, seed: int = 1) -> list[CellPlan]:
    return [one for one in plan.cells if (one.cell.variant, one.cell.recipe.seed) == (variant, seed)]


def masks_of(cells: list[CellPlan], store: Store) -> list[Mask]:
    stages = [cell.mask for cell in cells if cell.mask is not None]
    return [stage.load(workspace(store)) for stage in stages]


def counts(mask: Mask) -> dict[str, int]:
    kinds = mask.units.granularity.split("+")
    return {kind: Mask(mask.units.only(kind), mask.bits).removed for kind in kinds}


def test_controls_add_stages_and_change_none(recipe: dict[str, Any]) -> None:
    plain, controlled = plan_share(recipe), plan_share({**recipe, **BOTH})
    assert {stage.key for stage in plain.stages} < {stage.key for stage in controlled.stages}
    known = {stage.key for stage in plain.stages}
    added = [stage.kind for stage in controlled.stages if stage.key not in known]
    assert sorted(added) == sorted(
        2 * ["share", *2 * ["random_mask"], *2 * ["evaluate_shared"], *2 * ["evaluate"]]
    )
    assert [cell.cell.variant for cell in controlled.cells[:8]] == [
        variant for variant in (WITHOUT, WITH, RANDOM, ALONE) for _ in range(2)
    ]
    assert {cell.cell.variant for cell in plain.cells} == {WITHOUT, WITH}


def test_random_tickets_have_the_size_of_each_task_and_other_units(
    recipe: dict[str, Any], ran: tuple[Result, Path]
) -> None:
    store, plan = Store(ran[1] / "store"), plan_share({**recipe, **BOTH})
    for seed in (1, 2):
        chosen, random = (masks_of(of(plan, variant, seed), store) for variant in (WITH, RANDOM))
        assert len(chosen) == len(random) == 2
        for mine, other in zip(chosen, random, strict=True):
            assert counts(mine) == counts(other) == {"head": 4, "ffn": 0}
            assert mine != other
        assert random[0] != random[1], "every task has random units of its own"
    model = of(plan, RANDOM)[0].model
    assert isinstance(model, Share)
    assert model.label == "train 2 tasks with random tickets"
    assert masks_of(of(plan, RANDOM, 1), store) != masks_of(of(plan, RANDOM, 2), store)


def test_equal_seeds_give_equal_random_tickets(
    recipe: dict[str, Any], ran: tuple[Result, Path], tmp_path: Path
) -> None:
    plan, elsewhere = plan_share({**recipe, **BOTH, "seed": 1}), Store(tmp_path)
    execute([cell.mask for cell in of(plan, RANDOM) if cell.mask is not None], elsewhere)
    assert masks_of(of(plan, RANDOM), elsewhere) == masks_of(of(plan, RANDOM), Store(ran[1] / "store"))


def test_a_task_alone_scores_as_its_single_run_does(
    recipe: dict[str, Any], ran: tuple[Result, Path], tmp_path: Path
) -> None:
    result, folder = ran
    alone = [cell for cell in result.cells if cell.variant == ALONE]
    assert len(alone) == 4
    for task in recipe["tasks"]:
        single = tombola.run(
            {
                **{name: recipe[name] for name in ("name", "model", "seed", "precision", "data")},
                "task": task,
                "train": {**recipe["train"], **recipe["single"]},
            },
            output=tmp_path / Path(task).stem,
            store=folder / "store",
        )
        assert single.record.stages.run_now == 0, "the control is this very run"
        own = {cell.seed: cell for cell in alone if cell.recipe["task"] == single.cells[0].recipe["task"]}
        assert {cell.seed: cell.scores for cell in single.cells} == {
            seed: cell.scores for seed, cell in own.items()
        }


def test_rows_have_the_controls_and_the_difference_to_random_tickets(ran: tuple[Result, Path]) -> None:
    result, folder = ran
    saved = Result.load(folder / "out")
    rows = saved.sharing("validation")
    assert rows == result.record.sharing["validation"]
    assert [row.task for row in rows] == ["tiny", "again", "average"]
    for row in rows[:2]:
        values = {
            (cell.variant, cell.seed): cell.scores["validation"]["accuracy"].value
            for cell in saved.cells
            if cell.axes["task"] == row.task
        }
        assert row.random is not None
        assert row.alone is not None
        assert row.random_difference is not None
        assert row.random.mean == pytest.approx(np.mean([values[RANDOM, seed] for seed in (1, 2)]))
        assert row.alone.mean == pytest.approx(np.mean([values[ALONE, seed] for seed in (1, 2)]))
        gains = [values[WITH, seed] - values[RANDOM, seed] for seed in (1, 2)]
        assert row.random_difference.mean == pytest.approx(np.mean(gains))
        assert row.random_difference.spread == pytest.approx(np.std(gains, ddof=1))
    written = json.loads((folder / "out" / "results.json").read_text())["sharing"]["validation"]
    assert all(row[name] is not None for row in written for name in ("random", "random_difference", "alone"))


def test_controls_are_not_written_as_tickets(ran: tuple[Result, Path]) -> None:
    result, folder = ran
    assert sorted(path.name for path in (folder / "out" / "tickets").iterdir()) == ["seed-1", "seed-2"]
    assert not (folder / "out" / "models").exists()
    places = {(cell.variant, cell.ticket, cell.model) for cell in result.cells if cell.seed == 1}
    assert places == {
        (WITHOUT, None, None), (WITH, "tickets/seed-1", None), (RANDOM, None, None), (ALONE, None, None),
    }  # fmt: skip
    ticket = MultiTaskTicket.from_pretrained(folder / "out" / "tickets" / "seed-1")
    chosen = {cell.axes["task"]: cell for cell in result.cells if (cell.variant, cell.seed) == (WITH, 1)}
    for task in ticket.tasks:
        accuracy = ticket.metrics[task]["validation"]["accuracy"]["value"]
        assert accuracy == chosen[task].scores["validation"]["accuracy"].value


def test_the_command_shows_the_controls(
    recipe: dict[str, Any], ran: tuple[Result, Path], tmp_path: Path
) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(json.dumps({**recipe, **BOTH}))
    said = CliRunner().invoke(
        app, ["share", str(file), "--store", str(ran[1] / "store"), "-o", str(tmp_path / "out")]
    )
    assert said.exit_code == 0, said.output
    for words in ("alone", "with random tickets", "with − with random tickets", "as many units of each kind"):
        assert words in " ".join(said.stdout.split()), words
    table = said.stdout[: said.stdout.index("embeddings included")]
    assert all(len(line) <= 80 for line in table.splitlines())
    assert "…" not in table


@pytest.mark.parametrize("control", ["random", "alone"])
def test_each_control_can_be_had_on_its_own(recipe: dict[str, Any], control: str) -> None:
    plan = plan_share({**recipe, "seed": 1, "controls": [control]})
    assert {cell.cell.variant for cell in plan.cells} - {WITHOUT, WITH} == {
        RANDOM if control == "random" else ALONE
    }


def test_a_given_ticket_is_compared_with_a_random_one_of_its_size(
    recipe: dict[str, Any], ran: tuple[Result, Path], tasks: list[str], tmp_path: Path
) -> None:
    mask = ran[1] / "out" / "tickets" / "seed-1" / "tasks" / "tiny" / "mask.safetensors"
    own = {"search": {"method": "given", "masks": [str(mask)]}}
    changed = {**recipe, **BOTH, "seed": 1, "search": {"units": "head+ffn", "method": "magnitude"}}
    changed |= {"sparsity": 0, "per_task": {tasks[0]: own}}
    plan, store = plan_share(changed), Store(tmp_path)
    given, whole = of(plan, RANDOM)
    assert given.mask is not None
    assert whole.mask is None, "a task that shares everything has no random ticket either"
    execute([given.mask], store)
    (random,) = masks_of([given], store)
    assert counts(random) == counts(Mask.load(mask))
    assert random != Mask.load(mask)
    assert [cell.model.kind for cell in of(plan, ALONE)] == ["train", "train"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"controls": ["randm"]}, r"controls.*: must be 'random' or 'alone'"),
        ({"controls": ["alone", "alone"]}, "controls: must be unique"),
        ({"sparsity": 0}, "controls: random needs tickets to compare with, but no task has one"),
        ({"search": {"method": "random", "units": "head"}}, "those of tiny are random already"),
        ({"search": {"method": "importance", "order": "random"}}, "those of again are random already"),
        ({"pooler": "old"}, "pooler: must be 'own' or 'new'"),
    ],
)
def test_controls_that_compare_nothing_are_rejected(
    recipe: dict[str, Any], changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RecipeError, match=sentence):
        plan_share({**recipe, **BOTH, **changes})


def test_a_new_pooler_is_the_start_of_single_and_shared_trainings(
    recipe: dict[str, Any], tmp_path: Path
) -> None:
    own, new = (plan_share({**recipe, **BOTH, "seed": 1, "pooler": pooler}) for pooler in ("own", "new"))
    assert [stage.key for stage in own.stages] == [
        stage.key for stage in plan_share({**recipe, **BOTH, "seed": 1}).stages
    ]
    models = [stage.model for stage in new.stages if isinstance(stage, Share | Train)]
    assert len(models) == 5
    assert {model.pooler for model in models} == {"new"}
    trainings = (Share, Train, MaskStage)
    assert not {stage.key for stage in own.stages if isinstance(stage, trainings)} & {
        stage.key for stage in new.stages
    }
    still = {**recipe, "seed": 1, "pooler": "new", "train": {**recipe["train"], "learning_rate": 1e-12}}
    tombola.share(still, output=tmp_path / "out", store=tmp_path / "store")
    ticket = MultiTaskTicket.from_pretrained(tmp_path / "out" / "tickets" / "seed-1")
    task = of(new, ALONE)[0].cell.recipe.task
    origin = models[0].load(tombola.Task.named(task), seed=1)
    for name in ticket.tasks:
        weight = ticket.model(name).base_model.pooler.dense.weight
        torch.testing.assert_close(weight, origin.base_model.pooler.dense.weight, atol=1e-6, rtol=0)
