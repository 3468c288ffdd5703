"""16-bit floats with a gradient scaler, as a GPU has them: here on the processor, with a scaler put in by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tiny import tiny
from tests.training.test_gated import gating_of, toy_search
from tests.training.test_resume import Killed, killed_at
from tests.training.toy import same_weights, toy_train
from tombola.errors import TrainingDiverged
from tombola.foundations.hardware import resolve_precision
from tombola.gates import L0, HardConcrete
from tombola.objectives.settings import Adversary
from tombola.training import TrainSettings
from tombola.training.loop import arguments_of
from tombola.training.trainer import ObjectiveTrainer

Scaler = Callable[..., list[torch.amp.GradScaler]]


@pytest.fixture
def scaler(monkeypatch: pytest.MonkeyPatch) -> Scaler:
    """Gives every Trainer from now on a gradient scaler, which accelerate makes for GPUs only."""
    start = ObjectiveTrainer.__init__

    def put(**options: Any) -> list[torch.amp.GradScaler]:
        made: list[torch.amp.GradScaler] = []

        def init(self: ObjectiveTrainer, *arguments: Any, **others: Any) -> None:
            start(self, *arguments, **others)
            made.append(torch.amp.GradScaler("cpu", **options))
            self.accelerator.scaler, self.accelerator.native_amp = made[-1], True

        monkeypatch.setattr(ObjectiveTrainer, "__init__", init)
        return made

    return put


def test_fp16_reaches_the_trainer(tmp_path: Path) -> None:
    settings = TrainSettings()
    chosen = {name: arguments_of(settings, 1, name, tmp_path) for name in ("fp32", "bf16", "fp16")}  # type: ignore[arg-type]
    assert [(one.fp16, one.bf16) for one in chosen.values()] == [(False, False), (False, True), (True, False)]


def test_fp16_without_a_gpu_is_refused_before_anything_runs() -> None:
    with pytest.raises(Exception, match="fp16 needs a CUDA GPU"):
        resolve_precision("fp16", device="cpu")


def test_scaled_gradients_are_clipped_like_others(tmp_path: Path, scaler: Scaler) -> None:
    """A run in fp16 follows the one in fp32 whatever the scale: clipping and epsilon see unscaled gradients."""
    options = {"dropout": 0.0, "clip": 0.05, "epsilon": 1e-2}
    exact = toy_train(tiny("bert", num_labels=2), tmp_path / "fp32", **options)
    weights = []
    for exponent in (4, 8):
        scaler(init_scale=2.0**exponent)
        model = tiny("bert", num_labels=2)
        log = toy_train(model, tmp_path / str(exponent), precision="fp16", **options)
        assert [p.loss for p in log.curve] == pytest.approx([p.loss for p in exact.curve], rel=0.02)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.allclose(weights[0], weights[1], atol=1e-4)


def test_a_step_that_overflows_is_skipped_and_the_run_goes_on(tmp_path: Path, scaler: Scaler) -> None:
    made = scaler(init_scale=2.0**40)
    model = tiny("bert", num_labels=2)
    log = toy_train(model, tmp_path, precision="fp16", steps=40, adversary=Adversary(steps=2))
    assert log.steps == 40
    assert made[0].get_scale() < 2.0**40
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert not same_weights(model, tiny("bert", num_labels=2))


def test_a_run_that_overflows_at_any_scale_has_diverged(tmp_path: Path, scaler: Scaler) -> None:
    scaler(init_scale=2.0)
    model = tiny("bert", num_labels=2)
    model.classifier.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(TrainingDiverged, match="gradient became inf in step 3"):
        toy_train(model, tmp_path, precision="fp16")


def test_a_killed_run_goes_on_at_the_scale_it_had(tmp_path: Path, scaler: Scaler) -> None:
    made = scaler(init_scale=2.0**4, growth_interval=3)
    whole, resumed = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    log = toy_train(whole, tmp_path / "whole", precision="fp16")
    options = {"precision": "fp16", "checkpoint_minutes": 0}
    with pytest.raises(Killed):
        toy_train(tiny("bert", num_labels=2), tmp_path / "killed", progress=killed_at(6), **options)
    rest = toy_train(resumed, tmp_path / "killed", **options)
    assert rest.resumed_from == 5
    assert made[0].get_scale() == made[2].get_scale() > 2.0**4
    assert same_weights(whole, resumed)
    assert rest.curve == log.curve


@pytest.mark.parametrize("rate", [None, 1e-3], ids=["frozen", "joint"])
def test_a_search_weighs_loss_and_budget_alike_at_any_scale(
    tmp_path: Path, scaler: Scaler, rate: float | None
) -> None:
    scores, weights = [], []
    for exponent in (4, 10):
        scaler(init_scale=2.0**exponent)
        model = tiny("bert", num_labels=2)
        gating = gating_of(model, HardConcrete(), L0(weight=40.0, begin=0, full=0), "neuron")
        options = {"dropout": 0.0, "epsilon": 1e-2, "precision": "fp16", "weights_learning_rate": rate}
        toy_search(model, tmp_path / str(exponent), gating, **options)
        scores.append(torch.cat([score.detach().flatten() for score in gating.scores]))
        weights.append(torch.cat([weight.detach().flatten() for weight in model.parameters()]))
    assert torch.allclose(scores[0], scores[1], atol=1e-3)
    assert torch.allclose(weights[0], weights[1], atol=1e-4)
    assert same_weights(model, tiny("bert", num_labels=2)) is (rate is None)


def test_a_joint_step_that_overflows_is_skipped(tmp_path: Path, scaler: Scaler) -> None:
    made = scaler(init_scale=2.0**40)
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, HardConcrete(), L0(), "neuron")
    toy_search(model, tmp_path, gating, precision="fp16", steps=40, weights_learning_rate=1e-3)
    assert made[0].get_scale() < 2.0**40
    assert all(one.isfinite().all() for one in (*model.parameters(), *gating.parameters()))
    assert not same_weights(model, tiny("bert", num_labels=2))
