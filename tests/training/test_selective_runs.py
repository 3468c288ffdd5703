"""Selective updates in whole runs: ours under masks and with every objective, and anybody's Trainer."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import PreTrainedModel, Trainer, TrainingArguments

from tests.tiny import tiny
from tests.training.test_resume import Killed, killed_at
from tests.training.test_selective import ADAMW, a_batch, dropping, selective
from tests.training.toy import TOKENIZER, random_mask, same_weights, toy_data, toy_train
from tombola.errors import TombolaError
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.tasks import Collate
from tombola.training import KeepMask, TrainSettings
from tombola.training.selective import (
    Candidates,
    DropoutRisk,
    Freezing,
    KeepFreezing,
    RoseTrainer,
    Selection,
    SelectiveAdamW,
)
from tombola.training.selective.freezing import FREEZING

KINDS = ["first", "second", "ensemble", "random"]


def fresh() -> PreTrainedModel:
    return tiny("bert", num_labels=2)


@pytest.mark.parametrize(
    "chosen",
    [
        {"kind": "first", "every": 3},
        {"kind": "second"},
        {"kind": "ensemble", "elementwise": True, "every": 3, "gamma": 0.3},
        {"kind": "random", "elementwise": True, "every": 3},
    ],
)
def test_a_resumed_run_ends_bit_equal(tmp_path: Path, chosen: dict[str, Any]) -> None:
    select = Selection(**chosen, upper=60)
    options: dict[str, Any] = {"select": select, "weight_decay": 0.1, "dropout": 0.2, "learning_rate": 1e-3}
    whole, killed, resumed = fresh(), fresh(), fresh()
    log = toy_train(whole, tmp_path / "whole", **options)
    with pytest.raises(Killed):
        toy_train(killed, tmp_path / "killed", checkpoint_minutes=0, progress=killed_at(6), **options)
    rest = toy_train(resumed, tmp_path / "killed", **options)
    assert rest.resumed_from == 5
    assert same_weights(whole, resumed)
    assert rest.curve == log.curve
    tables = [json.loads((tmp_path / name / FREEZING).read_text()) for name in ("whole", "killed")]
    assert tables[0] == tables[1]
    assert tables[0]["steps"] == 10


@pytest.mark.parametrize("kind", KINDS)
def test_inside_a_ticket_removed_weights_stay_zero(tmp_path: Path, kind: str) -> None:
    model = fresh()
    mask = random_mask(model, kept=0.3)
    toy_train(model, tmp_path, mask=mask, select=Selection(kind=kind, upper=60), weight_decay=0.1)
    for name, kept in mask.tensors(model).items():
        assert (model.base_model.get_parameter(name)[~kept.bool()] == 0).all()
    found = Freezing.read(tmp_path / FREEZING)
    assert 0 < sum(share for row in found.frozen for share in row if share is not None) < 16


@pytest.mark.parametrize(
    "objective",
    [
        {"adversary": {"kind": "freelb", "steps": 2}},
        {"adversary": {"kind": "pgd", "steps": 2}},
        {"r_drop": 1.0},
        {"loss": {"kind": "poe"}},
        {"adversary": {"kind": "freelb", "steps": 2}, "r_drop": 0.5},
    ],
    ids=str,
)
def test_every_objective_can_be_selective(tmp_path: Path, objective: dict[str, Any]) -> None:
    data = toy_data().with_extra("bias", np.full((40, 2), np.log(0.5), dtype=np.float32))
    model = fresh()
    toy_train(model, tmp_path, data, select=Selection(kind="first", upper=60), **objective)
    windows = Freezing.read(tmp_path / FREEZING).windows
    assert len(windows) == 10
    assert all(sum(map(sum, window.frozen)) == 16 - 10 for window in windows)


def test_regression_can_be_selective(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=1)
    select = Selection(kind="ensemble", upper=60)
    toy_train(model, tmp_path, toy_data(regression=True), regression=True, select=select)
    assert Freezing.read(tmp_path / FREEZING).steps == 10


@pytest.mark.parametrize("kind", ["second", "random"])
def test_nothing_left_out_is_the_plain_run(tmp_path: Path, kind: str) -> None:
    plain, chosen = fresh(), fresh()
    options: dict[str, Any] = {"accumulate": 2, "weight_decay": 0.1}
    log = toy_train(plain, tmp_path / "plain", **options)
    assert toy_train(chosen, tmp_path / "chosen", select=Selection(kind=kind), **options).curve == log.curve
    assert same_weights(plain, chosen)


def test_adamax_is_refused() -> None:
    with pytest.raises(ValidationError, match="select only works with AdamW"):
        TrainSettings(optimizer="adamax", select=Selection(kind="second"))


def paired(model: PreTrainedModel, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of two unlike passes without chance: the second reads other words."""
    model.eval()
    one, two = a_batch(1, size), a_batch(2, size)
    return torch.cat([model(one["input_ids"]).logits, model(two["input_ids"]).logits]), one["labels"]


@pytest.mark.parametrize("elementwise", [False, True])
def test_accumulated_batches_choose_like_the_whole(elementwise: bool) -> None:
    """[bug] Accumulation is broken in the release: the choice must be that of the whole step, not of one batch."""
    model = dropping()
    selection = Selection(kind="first", upper=55, elementwise=elementwise)
    logits, labels = paired(model, 8)
    whole, parts = (DropoutRisk(Candidates(model), selection, summed) for summed in (False, True))
    whole.measure(logits, labels)
    for rows in (slice(0, 5), slice(5, 8)):
        parts.measure(torch.cat([half[rows] for half in logits.chunk(2)]), labels[rows])
        model.base_model.encoder.layer[0].attention.self.query.weight.grad = torch.zeros(16, 16)
    for one, other in zip(whole.take(), parts.take(), strict=True):
        assert (one == other).float().mean() > 0.99  # but for rounding at the very threshold


def test_an_accumulated_run_chooses_once_a_step(tmp_path: Path) -> None:
    select = Selection(kind="first", upper=60)
    log = toy_train(fresh(), tmp_path, accumulate=3, select=select)
    found = Freezing.read(tmp_path / FREEZING)
    assert found.steps == log.steps == 4
    assert all(sum(map(sum, window.frozen)) == 16 - 10 for window in found.windows)


@pytest.mark.parametrize("elementwise", [False, True])
def test_a_gradient_scaler_changes_nothing(elementwise: bool) -> None:
    """[bug] AMP is broken in the release: scaled gradients must not be compared with momenta that are not."""

    def trained(scale: float) -> PreTrainedModel:
        model = dropping()
        selection = Selection(kind="ensemble", upper=60, elementwise=elementwise)
        optimizer, objective = selective(model, selection)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=100)
        torch.manual_seed(0)
        for step in range(4):
            objective.step(model, a_batch(step), lambda loss: scaler.scale(loss).backward())
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        return model

    assert same_weights(trained(1.0), trained(2.0**12))


def test_a_skipped_step_leaves_nothing_behind() -> None:
    model = dropping()
    risk = DropoutRisk(Candidates(model), Selection(kind="first", upper=55), summed=True)
    logits, labels = paired(model, 8)
    risk.measure(logits * 1e3, labels.flip(0))
    model.zero_grad()  # the scaler found infinities and skipped the optimizer
    risk.measure(logits, labels)
    alone = DropoutRisk(Candidates(model), Selection(kind="first", upper=55), summed=True)
    alone.measure(logits, labels)
    assert [bool(chosen) for chosen in risk.take()] == [bool(chosen) for chosen in alone.take()]


@pytest.mark.bf16
def test_half_precision_runs(tmp_path: Path) -> None:
    toy_train(fresh(), tmp_path, precision="bf16", select=Selection(kind="ensemble", upper=60))
    assert Freezing.read(tmp_path / FREEZING).steps == 10


def arguments(folder: Path, **options: Any) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=8,
        num_train_epochs=2,
        learning_rate=1e-3,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        **options,
    )


def own(kind: type[Trainer], model: PreTrainedModel, folder: Path, **options: Any) -> Trainer:
    inputs = {"data_collator": Collate(TOKENIZER), "train_dataset": toy_data()}
    trainer = kind(model, arguments(folder), **inputs, **options)
    trainer.train()
    return trainer


def test_second_needs_only_the_optimizer_in_a_plain_trainer(tmp_path: Path) -> None:
    model = fresh()
    optimizer = SelectiveAdamW(
        model.parameters(), Candidates(model), Selection(kind="second", upper=40), **ADAMW
    )
    path = tmp_path / FREEZING
    own(Trainer, model, tmp_path, optimizers=(optimizer, None), callbacks=[KeepFreezing(path)])
    assert Freezing.read(path).windows[-1].frozen == optimizer.freezing().windows[-1].frozen
    assert sum(map(sum, optimizer.freezing().windows[-1].frozen)) == 16 - 7


@pytest.mark.parametrize("kind", ["first", "ensemble"])
def test_the_trainer_for_first_and_ensemble(tmp_path: Path, kind: str) -> None:
    model = fresh()
    mask = random_mask(model, kept=0.5)
    trainer = own(
        RoseTrainer, model, tmp_path, selection=Selection(kind=kind, upper=60), callbacks=[KeepMask(mask)]
    )
    assert trainer.optimizer.optimizer.steps == 10
    for name, kept in mask.tensors(model).items():
        assert (model.base_model.get_parameter(name)[~kept.bool()] == 0).all()


def test_the_trainer_takes_the_mean_of_two_losses(tmp_path: Path) -> None:
    """Without dropout both draws are one, and what is left of First with no quantile is the plain Trainer."""
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0}
    plain, twice = (tiny("bert", num_labels=2, **still) for _ in range(2))
    reference = own(Trainer, plain, tmp_path)
    trainer = own(RoseTrainer, twice, tmp_path, selection=Selection(kind="first"))
    losses = [run.state.log_history[-1]["train_loss"] for run in (reference, trainer)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert all(
        torch.allclose(one, other, atol=2e-3)
        for one, other in zip(plain.parameters(), twice.parameters(), strict=True)
    )


def test_the_trainer_compares_no_equal_passes(tmp_path: Path) -> None:
    model = tiny("modernbert", num_labels=2)
    with pytest.raises(TombolaError, match="first compares two dropout passes, but the model has no dropout"):
        own(RoseTrainer, model, tmp_path, selection=Selection(kind="first", upper=60))


def test_a_loss_of_your_own_meets_labels_of_the_doubled_batch(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: Any = None) -> torch.Tensor:
        seen.append((len(labels), int(num_items_in_batch)))
        return torch.nn.functional.cross_entropy(outputs.logits, labels, reduction="sum") / num_items_in_batch

    own(RoseTrainer, fresh(), tmp_path, selection=Selection(kind="first", upper=60), compute_loss_func=loss)
    assert set(seen) == {(16, 16)}


def test_plain_objectives_are_left_alone() -> None:
    _, objective = selective(dropping(), Selection(kind="second"))
    assert isinstance(objective, CrossEntropy)
