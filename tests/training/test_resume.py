"""Killed runs: what they leave behind, and that going on from it changes nothing."""

import shutil
import time
from pathlib import Path

import pytest
import torch

from tests.children import start_python
from tests.tiny import tiny
from tests.training.killable import run
from tests.training.toy import same_weights, toy_data, toy_train
from tombola.errors import TombolaError, TrainingDiverged
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.training.course import Evaluation


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoints").iterdir())


class Killed(BaseException):
    """Stands for a kill inside one process."""


def killed_at(step: int):
    def progress(now: int, steps: int, figures: dict[str, float]) -> None:
        if now == step:
            raise Killed

    return progress


@pytest.mark.thorough
def test_a_run_killed_by_sigkill_ends_bit_identical(tmp_path: Path) -> None:
    whole, log = run(tmp_path / "whole")
    child = start_python("-m", "tests.training.killable", tmp_path / "killed", "0.3")
    deadline = time.monotonic() + 100
    while not (tmp_path / "killed" / "checkpoints" / "step-4").is_dir():
        assert child.is_alive(), "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child.kill()
    child.join()
    resumed, rest = run(tmp_path / "killed")
    assert rest.resumed_from in (4, 5)
    assert same_weights(whole, resumed)
    assert rest.curve == log.curve
    assert (rest.steps, rest.epochs) == (log.steps, log.epochs) == (15, 3.0)


@pytest.mark.parametrize("optimizer", ["adamw", "adamax"])
@pytest.mark.parametrize("step", [2, 5, 7])  # in the first epoch, at its end, in the second
def test_resuming_anywhere_gives_the_same_weights_and_curve(
    tmp_path: Path, step: int, optimizer: str
) -> None:
    options = {
        "optimizer": optimizer,
        "weight_decay": 0.1,
        "warmup": 0.2,
        "schedule": "cosine",
        "epochs": 1.8,
    }
    whole = tiny("bert", num_labels=2)
    log = toy_train(whole, tmp_path / "whole", **options)
    torch.rand(3)
    killed = tiny("bert", num_labels=2)
    with pytest.raises(Killed):
        toy_train(killed, tmp_path / "killed", checkpoint_minutes=0, progress=killed_at(step + 1), **options)
    assert checkpoints(tmp_path / "killed") == [f"step-{step}"]
    resumed = tiny("bert", num_labels=2)
    rest = toy_train(resumed, tmp_path / "killed", **options)
    assert rest.resumed_from == step
    assert same_weights(whole, resumed)
    assert rest.curve == log.curve


def test_only_complete_checkpoints_count_and_only_the_last_is_kept(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    with pytest.raises(Killed):
        toy_train(model, tmp_path, checkpoint_minutes=0, progress=killed_at(6))
    assert checkpoints(tmp_path) == ["step-5"]
    folder = tmp_path / "checkpoints"
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".safetensors", ".json"}
    shutil.copytree(folder / "step-5", folder / "partial-step-6")
    (folder / "partial-step-6" / "model.safetensors").write_bytes(b"half")
    assert toy_train(tiny("bert", num_labels=2), tmp_path).resumed_from == 5


def test_a_thinned_curve_is_the_same_after_a_resumption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tombola.training.log.POINTS", 6)
    options = {"steps": 18, "data": toy_data(8), "batch_size": 2}
    log = toy_train(tiny("distilbert", num_labels=2), tmp_path / "whole", **options)
    assert [point.step for point in log.curve] == [4, 8, 12, 16, 18]
    with pytest.raises(Killed):
        toy_train(
            tiny("distilbert", num_labels=2),
            tmp_path / "killed",
            checkpoint_minutes=0,
            progress=killed_at(11),
            **options,
        )
    rest = toy_train(tiny("distilbert", num_labels=2), tmp_path / "killed", **options)
    assert rest.resumed_from == 8
    assert rest.curve == log.curve


def test_no_evaluation_is_left_out_by_a_kill(tmp_path: Path) -> None:
    seen: dict[int | str, list[int]] = {"epoch": [], 2: []}
    evaluations = [
        Evaluation(lambda step, model, kind=every: seen[kind].append(step), every)  # type: ignore[misc]
        for every in seen
    ]
    options = {"evaluations": evaluations, "checkpoint_minutes": 0}
    with pytest.raises(Killed):
        toy_train(tiny("bert", num_labels=2), tmp_path, progress=killed_at(6), **options)
    assert seen == {"epoch": [5], 2: [2, 4, 6]}
    toy_train(tiny("bert", num_labels=2), tmp_path, **options)
    assert seen == {"epoch": [5, 10], 2: [2, 4, 6, 6, 8, 10]}  # step 6 was taken again


def test_evaluations_do_not_change_what_a_resumed_run_ends_with(tmp_path: Path) -> None:
    whole, resumed = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    toy_train(whole, tmp_path / "whole")
    options = {"evaluations": [Evaluation(lambda step, model: torch.rand(3), 2)], "checkpoint_minutes": 0}
    with pytest.raises(Killed):
        toy_train(tiny("bert", num_labels=2), tmp_path / "killed", progress=killed_at(6), **options)
    assert toy_train(resumed, tmp_path / "killed", **options).resumed_from == 5
    assert same_weights(whole, resumed)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        toy_train(tiny("bert", num_labels=2), tmp_path, checkpoint_minutes=0, progress=killed_at(3))
    with pytest.raises(TombolaError, match=r"another run \(its learning_rate, seed differ\)"):
        toy_train(tiny("bert", num_labels=2), tmp_path, seed=2, learning_rate=0.5)


def test_another_number_of_processes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its batches are others, so that it would train on some examples twice and end at another learning rate."""
    with monkeypatch.context() as two:
        two.setattr("tombola.training.trainer.gather_object", lambda states: states * 2)
        with pytest.raises(Killed):
            toy_train(tiny("bert", num_labels=2), tmp_path, checkpoint_minutes=0, progress=killed_at(3))
    with pytest.raises(
        TombolaError, match=r"step-2 was written by a run on 2 processes, but this one has 1:"
    ):
        toy_train(tiny("bert", num_labels=2), tmp_path)


CHECKPOINT = [
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "trainer_state.json",
    "checksums.json",
]


@pytest.mark.parametrize("name", CHECKPOINT)
def test_a_damaged_checkpoint_is_named_and_trained_again(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole, again = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    toy_train(whole, tmp_path / "whole")
    with pytest.raises(Killed):
        toy_train(tiny("bert", num_labels=2), tmp_path, checkpoint_minutes=0, progress=killed_at(3))
    file = tmp_path / "checkpoints" / "step-2" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert toy_train(again, tmp_path).resumed_from is None
    assert "step-2" in caplog.text
    assert same_weights(whole, again)


class Exploding(CrossEntropy):
    """Turns into NaN after some steps."""

    calls = 0

    def loss(self, model, batch):
        type(self).calls += 1
        return super().loss(model, batch) * (float("nan") if self.calls > 4 else 1.0)


def test_a_diverging_run_names_step_rate_and_the_checkpoint_it_keeps(tmp_path: Path) -> None:
    Exploding.calls = 0
    with pytest.raises(TrainingDiverged) as caught:
        toy_train(tiny("bert", num_labels=2), tmp_path, objective=Exploding(), checkpoint_minutes=0)
    good = tmp_path / "checkpoints" / "step-4"
    assert good.is_dir()
    assert str(good) in str(caught.value)
    assert "step 5" in str(caught.value)
    assert "learning rate 0.006" in str(caught.value)


def test_an_infinite_gradient_never_reaches_the_weights(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    model.classifier.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(TrainingDiverged, match=r"gradient became inf in step 1 .*no checkpoint"):
        toy_train(model, tmp_path)
    assert all(torch.equal(value, start[name]) for name, value in model.state_dict().items())
