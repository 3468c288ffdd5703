"""A study: grids over any field, several recipes, shared stages once, failures that stop nothing else."""

import json
import re

import pytest
import yaml
from typer.testing import CliRunner

import tombola
from tombola.cli import app
from tombola.errors import RecipeError, TombolaError
from tombola.foundations.caching import run_cache
from tombola.pipeline.plan import Plan
from tombola.pipeline.planner import plan_cell
from tombola.pipeline.stages.draw import Draw
from tombola.pipeline.study import plan_study, read_study
from tombola.recipe.grid import expand
from tombola.results.result import Result
from tombola.store.store import Store

OMP = {"method": "magnitude"}
SHORT = {"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}


@pytest.fixture(scope="module")
def finished(world, tmp_path_factory):
    """A study of two variants and two seeds, run once."""
    folder = tmp_path_factory.mktemp("study")
    raw = world.recipe(train=SHORT, seed=[1, 2], search=OMP, variants={"dense": {"search": None}, "omp": {}})
    return raw, tombola.study(raw, store=folder / "store", output=folder / "out"), Store(folder / "store")


def planned_study(source, overrides=()) -> Plan:
    return plan_study(read_study(source, overrides))


def axes(plan):
    return [(one.cell.variant, one.cell.axes) for one in plan.cells]


def test_a_plain_recipe_is_a_study_of_itself(world):
    raw = world.recipe(search=OMP, draw={"sparsity": [0.5, 0.7]}, seed=[1, 2])
    assert [one.cell for one in planned_study(raw).cells] == expand(raw)


def test_a_value_that_a_grid_holds_twice_is_a_mistake(world):
    with pytest.raises(RecipeError, match=r"grid\.seed: 1 occurs more than once in the list"):
        planned_study({**world.recipe(), "grid": {"seed": [1, 2, 1]}})


@pytest.mark.parametrize("key", ["source", "overrides"])
def test_an_unknown_key_for_all_recipes_is_a_mistake_whatever_its_name(world, key):
    with pytest.raises(RecipeError, match=f"unknown key '{key}'"):
        planned_study({"recipes": [world.recipe()], "over": {key: 1}})


def test_cells_share_the_stages_that_they_have_in_common(world):
    raw = world.recipe(
        train=SHORT,
        search={"method": "iterative", "step": 0.2},
        draw={"sparsity": [0.2, 0.4, 0.6]},
        seed=[1, 2],
        variants={"imp": {}, "omp": {"search": {"method": "magnitude", "start": "finetuned"}}},
    )
    cells = planned_study(raw).cells
    inner = [
        stage for one in cells for end in one.ends() for stage in _all(end) if stage.kind in ("draw", "train")
    ]
    rounds = [stage for stage in inner if stage.kind == "draw"]
    assert len({id(stage) for stage in rounds}) == len({stage.key for stage in rounds}) == 2 * (3 + 3)
    trained = [stage for stage in inner if stage.kind == "train"]
    assert len({id(stage) for stage in trained}) == len({stage.key for stage in trained}), (
        "a ticket is retrained as the next round is trained"
    )
    finetunings = {id(stage) for stage in trained if stage.mask is None}
    assert len(finetunings) == 2, "one for each seed"


def test_a_stage_has_the_key_that_it_has_in_a_plan_of_its_own(world):
    raw = world.recipe(
        train=SHORT,
        seed=[1, 2],
        draw={"sparsity": [0.2, 0.6]},
        variants={
            "imp": {"search": {"method": "iterative", "step": 0.2, "epochs": "in_all"}},
            "learned": {"search": {"method": "learned", "mix": [{"on": "other"}]}},
            "sensitive": {"search": {"method": "importance", "units": "head"}, "retrain": {"epochs": 2}},
        },
    )
    together = [[stage.key for stage in one.stages()] for one in planned_study(raw).cells]
    alone = [[stage.key for stage in plan_cell(cell).stages()] for cell in expand(raw)]
    assert together == alone


def _all(stage):
    """A stage and its inputs, as often as they are asked for."""
    return [stage, *(one for needed in stage.inputs.values() for one in _all(needed))]


def test_a_grid_takes_any_field_even_one_that_is_a_list_or_a_mapping(world):
    raw = world.recipe(
        grid={
            "evaluate.on": [["validation"], ["validation", "other"]],
            "train": {"short": {"epochs": 1}, "long": {"epochs": 2}},
        }
    )
    planned = planned_study(raw)
    assert [one.cell.axes for one in planned.cells] == [
        {"evaluate.on": json.dumps(on), "train": length}
        for on in (["validation"], ["validation", "other"])
        for length in ("short", "long")
    ]
    assert [len(one.evaluations) for one in planned.cells] == [1, 1, 2, 2]
    assert [one.cell.recipe.train.epochs for one in planned.cells] == [1, 2, 1, 2]
    assert len({one.cell.label for one in planned.cells}) == 4


def test_several_recipes_make_one_study(world, tmp_path):
    (tmp_path / "first.yaml").write_text(yaml.safe_dump(world.recipe(search=OMP)))
    (tmp_path / "study.yaml").write_text(
        yaml.safe_dump(
            {
                "name": "both",
                "recipes": {"a": "first.yaml", "b": world.recipe()},
                "over": {"seed": [1, 2], "train.epochs": 1},
            }
        )
    )
    planned = planned_study(tmp_path / "study.yaml", ["seed=[3]"])
    assert axes(planned) == [("tiny", {"recipe": name, "seed": 3}) for name in "ab"]
    assert {one.cell.recipe.train.epochs for one in planned.cells} == {1}
    assert planned.name == "both"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"recipes": []}, "recipes"),
        ({"recipes": ["x"], "overr": {}}, "Did you mean 'over'"),
        ({"recipes": ["x"], "engine": {"kind": "slurm"}}, "engine"),
        ({"recipes": ["a/b.yaml", "a/b"]}, "same name"),
        ({"recipes": ["x"], "over": 3}, "over: takes a mapping"),
    ],
)
def test_a_wrong_study_file_is_one_sentence(raw, message):
    with pytest.raises(RecipeError, match=message):
        planned_study(raw)


def test_the_plan_shares_what_cells_have_in_common(world):
    raw = world.recipe(search={"method": "iterative", "step": 0.25}, draw={"sparsity": [0.25, 0.5, 0.75]})
    planned = planned_study(raw)
    alone = sum(len(one.stages()) for one in planned.cells)
    assert len(planned.stages) < alone
    assert len({stage.key for stage in planned.stages}) == len(planned.stages)
    with run_cache():
        trained = sum(stage.training_steps() for stage in planned.stages)
    assert (
        trained == 4 * 6 * 12
    )  # the dense model and three tickets: 6 epochs of 192 examples in batches of 16


def test_results_are_those_of_run(finished, tmp_path):
    raw, found, store = finished
    again = tombola.run(raw, store=store, output=tmp_path)
    assert again.record.stages.run_now == 0
    assert [cell.scores for cell in again.cells] == [cell.scores for cell in found.cells]
    assert Result.load(found.folder).rows() == found.rows()


def test_predictions_of_two_variants_are_compared_example_by_example(finished):
    _, found, store = finished
    (one,) = found.differences("validation", store)
    assert (one.first["variant"], one.second["variant"], one.seeds) == ("dense", "omp", 2)
    assert 0 < one.mcnemar <= 1


def test_a_finished_study_runs_nothing(finished, tmp_path):
    raw, _, store = finished
    again = tombola.study(raw, store=store, output=tmp_path)
    assert again.record.stages.run_now == 0
    assert len(again.cells) == 4


def test_a_failure_leaves_the_other_cells_and_is_listed(world, tmp_path, monkeypatch):
    whole = Draw.run

    def broken(stage, space):
        if stage.seed == 2:
            raise TombolaError("the disk is gone: mount it again")
        whole(stage, space)

    monkeypatch.setattr(Draw, "run", broken)
    raw = world.recipe(train=SHORT, seed=[1, 2], search=OMP, variants={"dense": {"search": None}, "omp": {}})
    found = tombola.study(raw, store=tmp_path / "store", output=tmp_path / "out")
    assert [(cell.variant, cell.seed) for cell in found.cells] == [
        ("dense", 1),
        ("dense", 2),
        ("omp", 1),
    ]
    (failure,) = found.failures
    assert failure.reason == "the disk is gone: mount it again"
    assert failure.cells == ["omp_seed-2"]
    monkeypatch.undo()
    mended = tombola.study(raw, store=tmp_path / "store", output=tmp_path / "out")
    assert mended.failures == []
    assert mended.record.stages.run_now == 3  # draw, retrain, evaluate


def test_the_command_plans_runs_and_writes_a_table(world, tmp_path):
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(world.recipe(train=SHORT, seed=[1, 2])))
    words = [
        "study",
        str(tmp_path / "study.yaml"),
        "--store",
        str(tmp_path / "store"),
        "-o",
        str(tmp_path / "out"),
    ]
    shown = CliRunner().invoke(app, [*words, "--dry-run"], env={"COLUMNS": "160"})
    assert "2 cells" in shown.output
    assert re.search(r"24 training steps, 100% of what separate scripts", shown.output)
    assert not (tmp_path / "out").exists()
    done = CliRunner().invoke(app, [*words, "--no-report", "--table", str(tmp_path / "t.csv")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "t.csv").read_text().startswith("variant,")
    assert (tmp_path / "out" / "results.json").is_file()
