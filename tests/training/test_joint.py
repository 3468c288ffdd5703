"""Weights and gates trained together: against a loop in plain PyTorch, against itself, and what it leaves."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.func import functional_call
from transformers import PreTrainedModel, get_scheduler

from tests.tiny import tiny
from tests.training.gated_parallel import run
from tests.training.test_gated import CALM, COUNT, ManyPasses, gating_of, same_scores, toy_search
from tests.training.test_resume import Killed, killed_at
from tests.training.toy import TOKENIZER, same_weights, toy_data
from tests.two_processes import run_together
from tombola.errors import TombolaError, TrainingDiverged
from tombola.gates import L0, Bernoulli, Budget, Gate, Gating, HardConcrete, Threshold
from tombola.gates.gating import _seed
from tombola.gates.hard_concrete import EDGE
from tombola.masks import Scores
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.objectives.distillation import Distill
from tombola.objectives.settings import Adversary
from tombola.tasks import Collate
from tombola.training.batches import ShuffledBatches
from tombola.training.gated import GateLog

pytestmark = pytest.mark.portable

RATE = 1e-3


def joint(
    folder: Path, gate: Gate, budget: Budget, **options: Any
) -> tuple[PreTrainedModel, Gating, GateLog]:
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, gate, budget, options.pop("units", "weight"))
    return model, gating, toy_search(model, folder, gating, weights_learning_rate=RATE, **options)


class _Through(torch.autograd.Function):
    """1 above the cut, and a derivative of 1."""

    @staticmethod
    def forward(ctx: Any, margin: Tensor) -> Tensor:
        return (margin > 0).float()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


def plain_gates(gate: Gate, scores: dict[str, Tensor], cut: Tensor, step: int) -> dict[str, Tensor]:
    """The factors of one pass, written down again."""
    if isinstance(gate, Threshold):
        return {name: _Through.apply(score - cut) for name, score in scores.items()}
    generator = torch.Generator().manual_seed(_seed(1, step))
    noises = {
        name: torch.empty_like(score).uniform_(EDGE, 1 - EDGE, generator=generator)
        for name, score in scores.items()
    }
    return {
        name: (1.2 * torch.sigmoid((noises[name].logit() + score) * 1.5) - 0.1).clamp(0, 1)
        for name, score in scores.items()
    }


@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize(
    ("gate", "budget"),
    [(HardConcrete(), L0(weight=40.0)), (Threshold(), L0(weight=0.0))],
    ids=["noisy", "straight"],
)
def test_joint_training_equals_the_loop_in_plain_pytorch(
    tmp_path: Path, gate: Gate, budget: L0, steps: int
) -> None:
    """Two rates on one schedule, two clips, decay without biases and norms, L0 on the scores alone."""
    data, reference = toy_data(37), tiny("bert", num_labels=2)
    first = gating_of(reference, gate, budget)
    names = [group.name for group in first.units.groups]
    scores = {n: s.detach().clone().requires_grad_() for n, s in zip(names, first.scores, strict=True)}
    how = {"dropout": 0.0, "weight_decay": 0.1, "warmup": 0.3 * (steps > 1), "epsilon": CALM, "clip": 0.02}
    model, gating, log = joint(tmp_path, gate, budget, data=data, steps=steps, **how)

    plain = [p for n, p in reference.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    decayed = [p for n, p in reference.named_parameters() if not (n.endswith("bias") or "LayerNorm" in n)]
    groups: list[dict[str, Any]] = [
        {"params": list(scores.values()), "lr": 0.1, "weight_decay": 0.1},
        {"params": decayed, "lr": RATE, "weight_decay": 0.1},
        {"params": plain, "lr": RATE, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, eps=CALM)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=3 * (steps > 1), num_training_steps=steps)
    batches, collate = ShuffledBatches(data.lengths, 8, 1), Collate(TOKENIZER)
    order = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        order += list(batches)
    for step, indices in enumerate(order[:steps]):
        batch = collate([data[index] for index in indices])
        own = dict(reference.base_model.named_parameters())
        gates = plain_gates(gate, scores, first.cuts[0], step)
        weights = {f"bert.{name}": own[name] * factor for name, factor in first.units.spread(gates)}
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        loss = F.cross_entropy(functional_call(reference, weights, kwargs=inputs).logits, batch["labels"])
        everything = torch.cat([score.flatten() for score in scores.values()])
        weight = budget.weight * min(max(step / steps - 0.1, 0) / 0.3, 1)
        penalty = weight * torch.sigmoid(everything - math.log(0.1 / 1.1) * 2 / 3).mean()
        (loss + penalty).backward()
        nn.utils.clip_grad_norm_(scores.values(), 0.02)
        nn.utils.clip_grad_norm_(reference.parameters(), 0.02)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        assert log.curve[step].loss == pytest.approx(loss.item(), abs=1e-5)
    for score, wanted in zip(gating.scores, scores.values(), strict=True):
        assert torch.allclose(score, wanted, atol=2e-5)
    start = tiny("bert", num_labels=2)
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter, reference.get_parameter(name), atol=2e-6), name
    moved = [name for name, value in model.named_parameters() if not value.equal(start.get_parameter(name))]
    assert {"bert.pooler.dense.weight", "classifier.weight", "bert.embeddings.word_embeddings.weight"} <= set(
        moved
    )


def test_passes_and_accumulated_batches_with_gates_of_their_own_add_up(tmp_path: Path) -> None:
    """Weights get the mean over passes of dL/d(W ⊙ m) ⊙ m, each with the m of its pass."""
    seen: list[tuple[Tensor, Tensor]] = []

    class Watched(ManyPasses):
        def step(self, model: PreTrainedModel, batch: dict[str, Tensor], backward: Any) -> Tensor:
            weight = model.bert.encoder.layer[0].output.dense.weight
            for _ in range(3):
                loss = self.loss(model, batch)
                (gradient,) = torch.autograd.grad(loss / 6, weight, retain_graph=True)
                seen.append((weight.detach().clone(), gradient))
                backward(loss / 3)
            return loss.detach()

    start = tiny("bert", num_labels=2).bert.encoder.layer[0].output.dense.weight.detach()
    options = {"objective": Watched(), "batch_size": 4, "accumulate": 2, "steps": 1, "dropout": 0.0}
    model, _, _ = joint(tmp_path, HardConcrete(), L0(), clip=0.0, epsilon=1.0, data=toy_data(8), **options)
    assert len(seen) == 6
    total = torch.stack([gradient * (gated / start) for gated, gradient in seen]).sum(dim=0)
    moved = model.bert.encoder.layer[0].output.dense.weight.detach() - start
    assert torch.allclose(moved, -RATE * total / (total.abs() + 1.0), atol=1e-7)  # Adam's first step
    assert moved.abs().max() > 1e-5


@pytest.mark.parametrize(
    ("gate", "budget", "optimizer"),
    [(HardConcrete(), L0(), "adamw"), (Threshold(), COUNT, "adamax"), (Bernoulli(), L0(), "adamw")],
)
def test_equal_seeds_and_resumed_searches_give_equal_bits(
    tmp_path: Path, gate: Gate, budget: Budget, optimizer: str
) -> None:
    options = {"epochs": 1.8, "warmup": 0.2, "weight_decay": 0.1, "optimizer": optimizer}
    model, gating, log = joint(tmp_path / "whole", gate, budget, **options)
    torch.rand(3)
    with pytest.raises(Killed):
        joint(tmp_path / "killed", gate, budget, checkpoint_minutes=0, progress=killed_at(6), **options)
    resumed, scores, rest = joint(tmp_path / "killed", gate, budget, **options)
    assert rest.resumed_from == 5
    assert same_weights(model, resumed)
    assert same_scores(gating, scores)
    assert torch.equal(gating.cuts, scores.cuts)
    assert (rest.curve, rest.sparsities) == (log.curve, log.sparsities)
    assert not same_weights(model, tiny("bert", num_labels=2))
    other, _, _ = joint(tmp_path / "other", gate, budget, seed=2, **options)
    assert not same_weights(model, other)


def test_a_checkpoint_of_frozen_weights_is_refused(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    with pytest.raises(Killed):
        toy_search(
            model,
            tmp_path,
            gating_of(model, HardConcrete(), L0()),
            checkpoint_minutes=0,
            progress=killed_at(3),
        )
    with pytest.raises(TombolaError, match=r"another run \(its weights_learning_rate differ\)"):
        joint(tmp_path, HardConcrete(), L0())


class Exploding(CrossEntropy):
    """Turns into NaN after some steps."""

    calls = 0

    def loss(self, model: PreTrainedModel, batch: dict[str, Tensor]) -> Tensor:
        type(self).calls += 1
        return super().loss(model, batch) * (float("nan") if self.calls > 2 else 1.0)


def test_a_search_that_diverges_leaves_the_last_good_weights(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, HardConcrete(), L0())
    options = {"weights_learning_rate": RATE, "dropout": 0.0, "schedule": "constant"}
    Exploding.calls = 0
    with pytest.raises(TrainingDiverged, match=r"step 3 at learning rate 0\.001"):
        toy_search(model, tmp_path / "nan", gating, objective=Exploding(), **options)
    good = tiny("bert", num_labels=2)
    toy_search(good, tmp_path / "good", gating_of(good, HardConcrete(), L0()), stop_at=2, **options)
    assert same_weights(model, good)


@pytest.mark.parametrize("kind", ["freelb", "pgd"])
def test_it_goes_with_an_adversary_and_a_teacher_of_another_width(tmp_path: Path, kind: str) -> None:
    options = {
        "adversary": Adversary(kind=kind, steps=2),
        "distill": Distill(hidden=0.5),
        "teacher": tiny("bert", num_labels=2, hidden_size=24, seed=3),
        "units": "head+neuron",
        "epochs": 1,
    }
    model, gating, _ = joint(tmp_path / "one", HardConcrete(), L0(), **options)
    again, scores, _ = joint(tmp_path / "two", HardConcrete(), L0(), **options)
    assert same_weights(model, again)
    assert same_scores(gating, scores)
    assert not same_weights(model, tiny("bert", num_labels=2))
    assert set(model.state_dict()) == set(tiny("bert", num_labels=2).state_dict())


@pytest.mark.thorough
@pytest.mark.parametrize(("accumulate", "sample"), [(1, "pass"), (2, "pass"), (2, "step")])
def test_two_processes_train_what_one_does(tmp_path: Path, accumulate: int, sample: str) -> None:
    whole, model = run(tmp_path / "one", 8, accumulate, sample, RATE)
    run_together("tests.training.gated_parallel", tmp_path / "two", accumulate, sample, RATE)
    halves = Scores.load(tmp_path / "two" / "scores.safetensors")
    assert all(torch.allclose(halves[name], score, atol=1e-5) for name, score in whole.learned().items())
    weights = load_file(tmp_path / "two" / "model.safetensors")
    start = tiny("bert", num_labels=2)
    for name, weight in model.named_parameters():
        moved, wanted = weights[name] - start.get_parameter(name), weight - start.get_parameter(name)
        assert torch.allclose(moved, wanted, atol=1e-2 * wanted.abs().max().item() + 1e-7), name
