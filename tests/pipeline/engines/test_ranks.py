"""`accelerate launch -m tombola run` on two processes: one mask, the scores of one process, one writer."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

import tombola
from tests.store.kinds import Fail, Write
from tombola.errors import TombolaError
from tombola.masks import Mask
from tombola.pipeline.engines import Local, ranks
from tombola.pipeline.watching import Watcher
from tombola.store.store import Store

TRAINING = {"epochs": 2, "learning_rate": 3e-3, "max_length": 16, "dropout": 0.0, "group_by_length": False}


def launch(recipe, output, store, verb="run"):
    """Two CPU processes (gloo). `accelerate launch --cpu` would start one: it leaves the rest to mpirun."""
    launcher = [
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
    ]
    command = [
        "-m",
        "tombola",
        verb,
        str(recipe),
        "--output",
        str(output),
        "--store",
        str(store),
        "--no-report",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true"}
    return subprocess.run(
        [sys.executable, *launcher, "--main_process_port", "0", *command],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def test_a_failure_ends_the_run_of_several_processes(tmp_path, monkeypatch):
    """The others wait for the stage, so the first must not go on without it."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="boom"):
        Local().run([Fail(text="boom")], Store(tmp_path), Watcher(), keep_going=True)


def test_processes_never_train_different_stages_together(tmp_path, monkeypatch):
    """One may have found a stage finished that another process finished a moment later for the other."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(Write, "distributed", True)
    store, first, second = Store(tmp_path), Write(text="1"), Write(text="2")
    said = [(first.name, None), (second.name, None), (first.name, str(tmp_path))]
    monkeypatch.setattr(ranks, "_shared", lambda _: said.pop(0))
    assert not ranks.make_on_all_ranks(second, store, lambda folder: pytest.fail("it is finished"))
    with pytest.raises(TombolaError, match=f"the first works on {first.name}, this one on {second.name}"):
        ranks.make_on_all_ranks(second, store, lambda folder: pytest.fail("it is another stage"))


def test_what_other_processes_left_without_a_checkpoint_is_forgotten(tmp_path, monkeypatch):
    """Their epochs end at other steps; a checkpoint is left for the training to refuse."""
    epoch, checkpoint = tmp_path / "work/epochs/5", tmp_path / "work/checkpoints/step-5"
    ranks.forget_other_ranks(tmp_path / "work")
    epoch.mkdir(parents=True)
    ranks.forget_other_ranks(tmp_path / "work")
    assert epoch.exists()
    monkeypatch.setenv("WORLD_SIZE", "2")
    checkpoint.mkdir(parents=True)
    ranks.forget_other_ranks(tmp_path / "work")
    assert epoch.exists()
    checkpoint.rmdir()
    ranks.forget_other_ranks(tmp_path / "work")
    assert not epoch.exists()


@pytest.mark.thorough
def test_two_processes_give_the_ticket_of_one(world, tmp_path):
    """The same global batch: 16 at once, or 8 on each of two ranks."""
    search = {"method": "magnitude", "start": "finetuned"}
    raw = world.recipe(search=search, draw={"sparsity": 0.5}, train={**TRAINING, "batch_size": 16})
    tombola.run(raw, output=tmp_path / "one", store=tmp_path / "one/store")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({**raw, "train": {**TRAINING, "batch_size": 8}}))
    done = launch(recipe, tmp_path / "two", tmp_path / "two/store")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("results.json") == 1

    cells, masks, weights, logs = [], [], [], []
    for folder in (tmp_path / "one", tmp_path / "two"):
        (cell,) = tombola.Result.load(folder).cells
        model = folder / "store" / cell.stages.model
        cells.append(cell)
        masks.append(Mask.load(folder / cell.ticket / "mask.safetensors").bits)
        weights.append(load_file(model / "model.safetensors"))
        logs.append(json.loads((model / "log.json").read_text()))
    assert all((masks[0][name] == masks[1][name]).all() for name in masks[0])
    assert logs[0]["steps"] == logs[1]["steps"] == 24
    losses = [[loss for _, loss, _ in log["curve"]] for log in logs]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)
    for name, weight in weights[0].items():
        if not name.endswith(
            "key.bias"
        ):  # softmax does not see it: its gradient is rounding, which Adam scales up
            np.testing.assert_allclose(weights[1][name], weight, atol=1e-3)
    scores = [cell.scores["validation"]["accuracy"].value for cell in cells]
    assert scores[0] == pytest.approx(scores[1], abs=1 / 48)
    halves = [path for path in (tmp_path / "two/store").rglob("*") if path.suffix in (".partial", ".fetch")]
    assert halves == []


@pytest.mark.thorough
def test_two_processes_update_selectively(world, tmp_path):
    """Rank 0 alone writes what was frozen."""
    train = {**TRAINING, "epochs": 1, "batch_size": 8, "select": {"kind": "second", "upper": 60}}
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(world.recipe(train=train)))
    done = launch(recipe, tmp_path / "run", tmp_path / "store")
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = tombola.Result.load(tmp_path / "run").cells
    assert json.loads((tmp_path / "store" / cell.stages.model / "freezing.json").read_text())["steps"] == 12
