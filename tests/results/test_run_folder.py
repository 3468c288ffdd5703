"""The folder of a run belongs to one recipe, and to one running process at a time."""

import json

import pytest
from filelock import FileLock

import tombola
from tests.world import World
from tombola.errors import TombolaError
from tombola.results.result import Result
from tombola.results.run_folder import LOCK, RUNNING, recipe_hash

QUICK = {"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}
RANDOM = {"method": "random"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def run(world: World, store, output, **changes):
    replace = changes.pop("replace", False)
    recipe = {**world.recipe(train=QUICK, search=RANDOM), **changes}
    return tombola.run(recipe, output=output, store=store, replace=replace)


def test_tickets_keep_their_names_as_the_grid_grows(world, store, tmp_path):
    first = run(world, store, tmp_path / "out")
    second = run(world, store, tmp_path / "out", seed=[1, 2])
    assert [cell.ticket for cell in first.cells] == ["tickets/tiny"]
    assert [cell.ticket for cell in second.cells] == ["tickets/tiny", "tickets/tiny_seed-2"]
    third = run(world, store, tmp_path / "out", seed=[1, 2], draw={"sparsity": [0.5, 0.6]})
    assert [cell.ticket for cell in third.cells][:2] == ["tickets/tiny", "tickets/tiny_seed-2"]
    assert all((tmp_path / "out" / cell.ticket / "ticket.json").is_file() for cell in third.cells)
    assert len({one.record.recipe_hash for one in (first, second, third)}) == 3


def test_the_result_of_another_recipe_is_replaced_only_if_asked(world, store, tmp_path):
    run(world, store, tmp_path, draw={"sparsity": [0.3, 0.5]})
    told = r"contains the result of another recipe \(draw.sparsity: \[0.3, 0.5\] there, 0.7 here\): choose"
    with pytest.raises(TombolaError, match=told):
        run(world, store, tmp_path, draw={"sparsity": 0.7})
    assert len(Result.load(tmp_path).cells) == 2
    run(world, store, tmp_path, draw={"sparsity": 0.7}, replace=True)
    assert len(Result.load(tmp_path).cells) == 1
    assert [one.name for one in (tmp_path / "tickets").iterdir()] == ["tiny"]


def test_without_an_output_another_recipe_gets_a_folder_of_its_own(
    world, store, tmp_path, monkeypatch, caplog
):
    monkeypatch.chdir(tmp_path)
    run(world, store, None)
    for _ in range(2):  # the second time it finds its own folder again
        found = run(world, store, None, draw={"sparsity": 0.7})
        assert str(found.folder) == "runs/tiny-2"
    assert (
        "runs/tiny contains the result of another recipe, so this one is written to runs/tiny-2"
        in caplog.text
    )
    assert sorted(one.name for one in (tmp_path / "runs").iterdir()) == ["tiny", "tiny-2"]


def test_a_run_of_another_recipe_does_not_share_the_folder(world, store, tmp_path):
    (tmp_path / RUNNING).mkdir()
    other = tmp_path / RUNNING / "0123-1.lock"
    with (
        FileLock(other),
        pytest.raises(TombolaError, match="is in use by a run of another recipe: wait until"),
    ):
        run(world, store, tmp_path)
    assert other.exists()
    assert run(world, store, tmp_path).cells  # what a killed run has left does not hold it up
    assert [one.name for one in (tmp_path / RUNNING).iterdir()] == [LOCK]


def test_runs_of_the_same_recipe_share_the_folder(world, store, tmp_path):
    recipe = world.recipe(train=QUICK, search=RANDOM)
    (tmp_path / RUNNING).mkdir()
    with FileLock(tmp_path / RUNNING / f"{recipe_hash(recipe)}-1.lock"):
        assert run(world, store, tmp_path).cells


def test_a_folder_that_cannot_be_written_is_found_before_the_work(world, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TombolaError, match=r"cannot write to the output folder"):
        run(world, tmp_path / "store", tmp_path / "file" / "out")
    assert not (tmp_path / "store" / "train").exists()


def change_places(folder, place):
    """Let the result in a folder say that its tickets are somewhere else."""
    result = Result.load(folder)
    cells = [cell.model_copy(update={"ticket": place}) for cell in result.cells]
    Result(result.record.model_copy(update={"cells": cells}), folder).save()


@pytest.mark.parametrize("place", ["../escaped", "tickets/../../escaped", "{}/escaped"])
def test_a_result_from_elsewhere_does_not_lead_out_of_its_folder(world, store, tmp_path, place):
    run(world, store, tmp_path / "out")
    change_places(tmp_path / "out", place.format(tmp_path))
    with pytest.raises(TombolaError, match="is not the name of a file below"):
        run(world, store, tmp_path / "out")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("place", ["notes", "../mine", "link/ticket"])
def test_only_tickets_inside_the_folder_are_cleared(world, store, tmp_path, place):
    out, mine = tmp_path / "out", tmp_path / "mine"
    run(world, store, out)
    for folder in (out / "notes", mine, mine / "ticket"):
        folder.mkdir()
        (folder / "text").write_text("mine")
    for folder in (mine, mine / "ticket"):
        (folder / "ticket.json").write_text("{}")
    (out / "link").symlink_to(mine)
    change_places(out, place)
    run(world, store, out, draw={"sparsity": 0.7}, replace=True)
    assert (out / place / "text").read_text() == "mine"


def test_a_damaged_result_is_written_again(world, store, tmp_path):
    run(world, store, tmp_path)
    (tmp_path / "results.json").write_text("{")
    run(world, store, tmp_path, draw={"sparsity": 0.6})
    assert len(Result.load(tmp_path).cells) == 1


def test_a_result_of_another_format_is_replaced_only_by_its_own_recipe(world, store, tmp_path, caplog):
    file = run(world, store, tmp_path).folder / "results.json"
    former = json.dumps(json.loads(file.read_text()) | {"format": 1})
    file.write_text(former)
    with pytest.raises(TombolaError, match=r"another recipe \(.*results.json has format 1, but .*\): choose"):
        run(world, store, tmp_path, draw={"sparsity": 0.6})
    assert file.read_text() == former
    run(world, store, tmp_path)
    assert "reads format 2: it is written again" in caplog.text
    assert len(Result.load(tmp_path).cells) == 1


def test_the_dense_model_is_a_folder_that_knows_its_task(world, store, tmp_path):
    result = run(world, store, tmp_path, variants={"dense": {"search": None}, "random": {}})
    dense, ticket = result.cells
    assert (dense.model, dense.ticket) == ("models/dense", None)
    assert (ticket.model, ticket.ticket) == (None, "tickets/random")
    folder = tmp_path / "models" / "dense"
    scores = tombola.evaluate(folder)
    assert scores["validation"]["accuracy"].value == dense.scores["validation"]["accuracy"].value
    assert json.loads((folder / "ticket.json").read_text())["mask"] is None
    assert "The dense baseline of the tickets of the same recipe" in (folder / "README.md").read_text()
    with pytest.raises(TombolaError, match="is a dense model: it has no mask"):
        tombola.inspect(folder)
    with pytest.raises(TombolaError, match=r"is not a ticket: it has no mask.safetensors"):
        tombola.api.shrink(folder, tmp_path / "small")


def test_the_same_recipe_is_known_again_from_another_folder(world, store, tmp_path, monkeypatch):
    for place in ("a", "a/b"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        assert run(world, store, tmp_path / "out").cells
