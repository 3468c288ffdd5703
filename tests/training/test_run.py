"""What a run computes: against a loop in plain PyTorch, against itself, and against its settings."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from transformers import TrainerCallback, get_scheduler

from tests.tiny import VOCABULARY, tiny, token_ids
from tests.training.toy import TOKENIZER, same_weights, toy_data, toy_train
from tombola.errors import TombolaError
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.tasks import Collate
from tombola.tasks.packing import _blocks as blocks_of
from tombola.training import TrainLog
from tombola.training.batches import ShuffledBatches
from tombola.training.course import Evaluation

pytestmark = pytest.mark.portable

FAMILIES = ["bert", "distilbert", "modernbert", "gpt2"]
CALM = 1e-2  # an epsilon with which Adam does not blow rounding errors up where a gradient is zero


class Watch(TrainerCallback):
    """Notes what a callback can see of a run."""

    def __init__(self) -> None:
        self.weights: dict[int, dict[str, torch.Tensor]] = {}
        self.dropouts: set[float] = set()

    def on_step_end(self, args, state, control, **kwargs: Any) -> None:
        self.weights[state.global_step] = {k: v.clone() for k, v in kwargs["model"].state_dict().items()}
        self.groups = kwargs["optimizer"].param_groups
        self.names = {parameter: name for name, parameter in kwargs["model"].named_parameters()}
        self.dropouts |= {module.p for module in kwargs["model"].modules() if isinstance(module, nn.Dropout)}
        self.dtypes = {parameter.dtype for parameter in kwargs["model"].parameters()}


def largest_difference(one: nn.Module, other: nn.Module) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


@pytest.mark.parametrize("schedule", ["linear", "constant", "cosine"])
def test_a_run_equals_the_loop_in_plain_pytorch(tmp_path: Path, schedule: str) -> None:
    model, reference = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    data = toy_data(37)
    log = toy_train(
        model, tmp_path, data, seed=5, epochs=2, dropout=0.0, weight_decay=0.1, schedule=schedule, warmup=0.3,
        epsilon=CALM,
    )  # fmt: skip

    plain = [p for n, p in reference.named_parameters() if "bias" in n or "LayerNorm" in n]
    decayed = [p for n, p in reference.named_parameters() if not ("bias" in n or "LayerNorm" in n)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-2, eps=CALM
    )
    kind = "constant_with_warmup" if schedule == "constant" else schedule
    scheduler = get_scheduler(kind, optimizer, num_warmup_steps=3, num_training_steps=10)
    batches, collate = ShuffledBatches(data.lengths, 8, 5), Collate(TOKENIZER)
    losses, rates = [], []
    for epoch in range(2):
        batches.set_epoch(epoch)
        for indices in batches:
            batch = collate([data[index] for index in indices])
            loss = F.cross_entropy(
                reference(batch["input_ids"], attention_mask=batch["attention_mask"]).logits, batch["labels"]
            )
            loss.backward()
            nn.utils.clip_grad_norm_(reference.parameters(), 1.0)
            rates.append(scheduler.get_last_lr()[0])
            losses.append(loss.item())
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    assert largest_difference(model, reference) < 1e-6
    assert [point.loss for point in log.curve] == pytest.approx(losses, abs=1e-6)
    assert [point.learning_rate for point in log.curve] == rates
    assert (log.steps, log.epochs) == (10, 2.0)


@pytest.mark.parametrize("regression", [False, True])
def test_accumulated_batches_equal_one_large_batch(tmp_path: Path, regression: bool) -> None:
    data = toy_data(37, regression)
    data.labels[::5] = -100 if regression else data.labels[::5]  # −100 is an ordinary number, and counts
    options = {"data": data, "group_by_length": False, "dropout": 0.0}
    options |= {"regression": regression, "epsilon": CALM}
    labels = 1 if regression else 2
    large, small = tiny("bert", num_labels=labels), tiny("bert", num_labels=labels)
    one = toy_train(large, tmp_path / "large", batch_size=8, **options)
    two = toy_train(small, tmp_path / "small", batch_size=4, accumulate=2, **options)
    assert largest_difference(large, small) < 1e-6
    assert [p.loss for p in one.curve] == pytest.approx([p.loss for p in two.curve])
    assert one.steps == two.steps == 10


@pytest.mark.parametrize("model_type", ["gpt2", "llama"])
def test_the_loss_of_a_decoder_is_the_mean_over_its_labels(tmp_path: Path, model_type: str) -> None:
    """Labels stand where their tokens are predicted, so that the first of a row counts like the others."""
    tokens = np.random.default_rng(0).integers(5, VOCABULARY, 62).astype(np.int32)
    data = blocks_of(tokens, np.zeros(62, np.int32), 6)
    collate = Collate(TOKENIZER, token_labels=True)
    model = tiny(model_type, "causal-lm")
    batch = collate([data[index] for index in range(len(data))])
    with torch.no_grad():
        logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    log = toy_train(model, tmp_path, data, collate=collate, batch_size=4, accumulate=4, epochs=1, dropout=0.0)
    (point,) = log.curve
    assert point.loss == pytest.approx(
        F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten()).item()
    )


def test_a_decoder_is_trained_on_the_last_token_before_the_padding_of_the_batches(tmp_path: Path) -> None:
    one, two = (tiny("gpt2", num_labels=2, pad_token_id=pad) for pad in (0, TOKENIZER.mask_token_id))
    first, second = (toy_train(model, tmp_path / str(n)) for n, model in enumerate((one, two)))
    assert [p.loss for p in first.curve] == [p.loss for p in second.curve]


def test_two_runs_with_one_seed_are_bit_identical_whatever_ran_before(tmp_path: Path) -> None:
    one, two, other = (tiny("bert", num_labels=2) for _ in range(3))
    first = toy_train(one, tmp_path / "one", seed=7)
    torch.rand(11), np.random.rand(3), random.random()
    second = toy_train(two, tmp_path / "two", seed=7)
    third = toy_train(other, tmp_path / "other", seed=8)
    assert same_weights(one, two)
    assert first.curve == second.curve
    assert not same_weights(one, other)
    assert first.curve != third.curve


@pytest.mark.parametrize("model_type", FAMILIES)
@pytest.mark.parametrize("regression", [False, True])
def test_every_family_learns(tmp_path: Path, model_type: str, regression: bool) -> None:
    model = tiny(model_type, num_labels=1 if regression else 2)
    data = toy_data(64, regression)
    log = toy_train(
        model,
        tmp_path,
        data,
        epochs=12,
        batch_size=16,
        learning_rate=1e-2,
        regression=regression,
        dropout=0.0,
    )
    start = np.mean([point.loss for point in log.curve[:4]])
    assert np.mean([point.loss for point in log.curve[-4:]]) < 0.5 * start


@pytest.mark.parametrize("pad", [None, 4])
def test_a_decoder_gets_the_tokenizers_padding_token(tmp_path: Path, pad: int | None) -> None:
    model = tiny("gpt2", num_labels=2, pad_token_id=pad)
    toy_train(model, tmp_path, epochs=1)
    assert model.config.pad_token_id == TOKENIZER.pad_token_id


@pytest.mark.bf16
def test_training_leaves_no_other_trace_in_the_model(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    before, attributes = model.config.to_dict(), set(vars(model))
    toy_train(model, tmp_path, precision="bf16", dropout=0.3, epochs=1)
    assert model.config.to_dict() == before
    assert set(vars(model)) == attributes
    assert not model.training
    assert {module.p for module in model.modules() if isinstance(module, nn.Dropout)} == {0.1}
    assert not list(tmp_path.iterdir())


@pytest.mark.bf16
def test_bf16_computes_in_bfloat16_over_full_precision_weights(tmp_path: Path) -> None:
    outputs: list[torch.dtype] = []
    model, full = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    handle = model.bert.pooler.dense.register_forward_hook(lambda m, i, output: outputs.append(output.dtype))
    watch = Watch()
    log = toy_train(model, tmp_path / "bf16", precision="bf16", callbacks=[watch], dropout=0.0, epochs=1)
    handle.remove()
    assert set(outputs) == {torch.bfloat16}
    assert watch.dtypes == {torch.float32}
    exact = toy_train(full, tmp_path / "fp32", dropout=0.0, epochs=1)
    assert log.precision == "bf16"
    assert exact.precision == "fp32"
    assert log.curve != exact.curve
    assert [p.loss for p in log.curve] == pytest.approx([p.loss for p in exact.curve], rel=0.2)
    assert model(token_ids()).logits.dtype == torch.float32


@pytest.mark.parametrize("optimizer", ["adamw", "adamax"])
@pytest.mark.parametrize("model_type", FAMILIES)
def test_biases_and_norms_do_not_decay(tmp_path: Path, model_type: str, optimizer: str) -> None:
    watch = Watch()
    toy_train(
        tiny(model_type, num_labels=2),
        tmp_path,
        steps=1,
        weight_decay=0.1,
        optimizer=optimizer,
        callbacks=[watch],
    )
    decay = {watch.names[p]: group["weight_decay"] for group in watch.groups for p in group["params"]}
    assert len(decay) == len(watch.names)
    assert set(decay.values()) == {0.0, 0.1}
    for name, value in decay.items():
        vector = watch.weights[1][name].dim() == 1
        assert value == (0.0 if vector else 0.1), name


def test_watching_a_run_does_not_change_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    alone, watched = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    toy_train(alone, tmp_path / "alone", epochs=2.5)
    looks: dict[str, list[int]] = {"epoch": [], "4": []}
    steps: list[tuple[int, int]] = []

    def look(kind: str) -> Callable[[int, nn.Module], None]:
        def on_evaluate(step: int, model: nn.Module) -> None:
            assert not model.training
            torch.rand(5), np.random.rand(5), random.random()
            looks[kind].append(step)

        return on_evaluate

    def progress(step: int, total: int, figures: dict[str, float]) -> None:
        assert set(figures) == ({"epoch"} if step == 1 else {"epoch", "loss", "learning_rate"})
        steps.append((step, total))

    evaluations = [Evaluation(look("epoch")), Evaluation(look("4"), every=4)]
    toy_train(watched, tmp_path / "watched", epochs=2.5, evaluations=evaluations, progress=progress)
    assert same_weights(alone, watched)
    assert looks == {"epoch": [5, 10], "4": [4, 8, 12]}
    assert steps == [(step, 13) for step in range(1, 14)]
    assert capfd.readouterr() == ("", "")


class ManyPasses(CrossEntropy):
    """Three passes a step, as adversarial objectives make them, here without a perturbation."""

    def step(self, model, batch, backward):
        total = torch.zeros(())
        for _ in range(3):
            loss = self.loss(model, batch) / 3
            backward(loss)
            total += loss.detach()
        return total


def test_an_objective_may_make_several_passes(tmp_path: Path) -> None:
    options = {"dropout": 0.0, "accumulate": 2, "data": toy_data(37), "epsilon": CALM}
    one, many = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    single = toy_train(one, tmp_path / "one", **options)
    triple = toy_train(many, tmp_path / "many", objective=ManyPasses(), **options)
    assert largest_difference(one, many) < 1e-6
    assert [p.loss for p in single.curve] == pytest.approx([p.loss for p in triple.curve], abs=1e-6)


def test_the_log_is_json(tmp_path: Path) -> None:
    log = toy_train(tiny("bert", num_labels=2), tmp_path, epochs=1)
    assert TrainLog.model_validate(json.loads(json.dumps(log.model_dump(mode="json")))) == log
    assert log.resumed_from is None
    assert log.examples_per_second == pytest.approx(40 / log.seconds, rel=0.01)


def test_a_tracker_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="report_to: 'tensorbored' is not installed"):
        toy_train(tiny("bert", num_labels=2), tmp_path, report_to=["tensorbored"])
