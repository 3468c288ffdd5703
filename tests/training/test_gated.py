"""A search for a mask: against a loop in plain PyTorch, against itself, and what it leaves of the model."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from transformers import PreTrainedModel, get_scheduler

from tests.tiny import tiny
from tests.training.gated_parallel import run
from tests.training.toy import TOKENIZER, same_weights, toy_data
from tests.two_processes import run_together
from tombola.errors import TombolaError, TrainingDiverged
from tombola.gates import L0, Bernoulli, Budget, Exact, Gate, Gating, HardConcrete, Threshold
from tombola.gates.gating import _seed
from tombola.gates.hard_concrete import EDGE
from tombola.masks import Scores, Units, draw
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.tasks import Collate
from tombola.training import TrainSettings
from tombola.training.batches import ShuffledBatches
from tombola.training.gated import GateLog, train_gates

pytestmark = pytest.mark.portable

CALM = 1e-2  # an epsilon with which Adam does not blow rounding errors up where a gradient is zero
COUNT = Exact(reset_every=3)


def gating_of(
    model: PreTrainedModel, gate: Gate, budget: Budget, units: str = "weight", sparsity: float = 0.5
) -> Gating:
    return Gating(Units.of(model, units), model, gate, budget, seed=1, sparsity=sparsity)


def toy_search(model: PreTrainedModel, folder: Path, gating: Gating, **options: Any) -> GateLog:
    settings = {name: options.pop(name) for name in list(options) if name in TrainSettings.model_fields}
    settings = {"epochs": 2, "batch_size": 8, "learning_rate": 0.1, "checkpoint_minutes": 999.0, **settings}
    return train_gates(
        model,
        options.pop("data", None) or toy_data(),
        TrainSettings(**settings),
        gating,
        **{"collate": Collate(TOKENIZER), "seed": 1, "precision": "fp32", "folder": folder, **options},
    )


def same_scores(one: Gating, other: Gating) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.scores, other.scores, strict=True))


def test_a_search_equals_the_loop_in_plain_pytorch(tmp_path: Path) -> None:
    """One noise a pass, gradients of scores alone in the clip, decay and L0 on all scores, λ by steps.

    [bug] In the release gradients of the frozen weights are computed too, and pollute the clip.
    """
    model, reference = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    data, steps = toy_data(37), 10
    gating = gating_of(model, HardConcrete(), L0(weight=40.0))
    names = [group.name for group in gating.units.groups]
    scores = {
        name: score.detach().clone().requires_grad_()
        for name, score in zip(names, gating.scores, strict=True)
    }
    log = toy_search(
        model, tmp_path, gating, data=data, dropout=0.0, weight_decay=0.1, warmup=0.3, epsilon=CALM, clip=0.02
    )

    own = dict(reference.base_model.named_parameters())
    optimizer = torch.optim.AdamW(scores.values(), lr=0.1, weight_decay=0.1, eps=CALM)
    scheduler = get_scheduler("linear", optimizer, num_warmup_steps=3, num_training_steps=steps)
    batches, collate, step = ShuffledBatches(data.lengths, 8, 1), Collate(TOKENIZER), 0
    for epoch in range(2):
        batches.set_epoch(epoch)
        for indices in batches:
            batch = collate([data[index] for index in indices])
            generator = torch.Generator().manual_seed(_seed(1, step))
            gates = {}
            for name, score in scores.items():
                noise = torch.empty_like(score).uniform_(EDGE, 1 - EDGE, generator=generator)
                gates[name] = (1.2 * torch.sigmoid((noise.logit() + score) * 1.5) - 0.1).clamp(0, 1)
            weights = {f"bert.{name}": own[name].detach() * gate for name, gate in gating.units.spread(gates)}
            inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
            loss = F.cross_entropy(functional_call(reference, weights, kwargs=inputs).logits, batch["labels"])
            everything = torch.cat([score.flatten() for score in scores.values()])
            weight = 40.0 * min(max(step / steps - 0.1, 0) / 0.3, 1)
            penalty = weight * torch.sigmoid(everything - math.log(0.1 / 1.1) * 2 / 3).mean()
            (loss + penalty).backward()
            nn.utils.clip_grad_norm_(scores.values(), 0.02)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            assert log.curve[step].loss == pytest.approx(loss.item(), abs=1e-5)
            step += 1
    for score, wanted in zip(gating.scores, scores.values(), strict=True):
        assert torch.allclose(score, wanted, atol=2e-5)
    assert (log.steps, log.epochs) == (10, 2.0)
    assert log.sparsities[-1].sparsity == pytest.approx(1 - gating.openness())


@pytest.mark.bf16
def test_a_search_leaves_the_model_bit_for_bit_as_it_was(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    attributes = set(vars(model))
    toy_search(model, tmp_path, gating_of(model, HardConcrete(), L0(), "head"), epochs=1, precision="bf16")
    assert same_weights(model, tiny("bert", num_labels=2))
    assert set(vars(model)) == attributes
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


class ManyPasses(CrossEntropy):
    """Three passes a batch, as an adversary makes, noting the weights that each one sees."""

    seen: list[torch.Tensor] = []

    def step(self, model, batch, backward):
        for _ in range(3):
            loss = self.loss(model, batch)
            self.seen.append(model.bert.encoder.layer[0].output.dense.weight.detach().clone())
            backward(loss / 3)
        return loss.detach()


def test_one_sample_serves_all_passes_and_batches_of_a_step(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    ManyPasses.seen = []
    gating = gating_of(model, HardConcrete(), L0())
    options = {"objective": ManyPasses(), "epochs": 1, "batch_size": 4, "accumulate": 2}
    toy_search(model, tmp_path, gating, sample="step", **options)
    seen = ManyPasses.seen
    assert len(seen) == 5 * 2 * 3
    for step in range(5):
        first, *others = seen[6 * step : 6 * step + 6]
        assert all(torch.equal(first, other) for other in others)
        assert step == 0 or not torch.equal(first, seen[6 * step - 1])


def test_three_passes_of_a_third_are_one_pass(tmp_path: Path) -> None:
    one, three = (tiny("bert", num_labels=2) for _ in range(2))
    gatings = [gating_of(model, HardConcrete(), L0(), "neuron") for model in (one, three)]
    options = {"dropout": 0.0, "epsilon": CALM, "sample": "step"}
    toy_search(one, tmp_path / "one", gatings[0], **options)
    toy_search(three, tmp_path / "three", gatings[1], objective=ManyPasses(), **options)
    for score, other in zip(gatings[0].scores, gatings[1].scores, strict=True):
        assert torch.allclose(score, other, atol=1e-5)


@pytest.mark.parametrize("gate", [HardConcrete(), Bernoulli()], ids=["hard_concrete", "bernoulli"])
def test_every_pass_has_gates_of_its_own(tmp_path: Path, gate: Gate) -> None:
    """As released: the passes of an adversary and accumulated batches average the gates' noise."""
    model = tiny("bert", num_labels=2)
    ManyPasses.seen = []
    options = {"objective": ManyPasses(), "epochs": 1, "batch_size": 4, "accumulate": 2}
    toy_search(model, tmp_path, gating_of(model, gate, L0()), **options)
    seen = ManyPasses.seen
    assert len(seen) == 5 * 2 * 3
    assert len({weights.numpy().tobytes() for weights in seen}) == len(seen)
    assert not model._forward_pre_hooks


def test_gates_without_noise_are_sampled_once_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, int]] = []
    sample = Gating.sample
    monkeypatch.setattr(
        Gating, "sample", lambda self, step, number=0: (drawn.append((step, number)), sample(self, step))
    )
    model = tiny("bert", num_labels=2)
    options = {"objective": ManyPasses(), "epochs": 1, "batch_size": 4, "accumulate": 2}
    toy_search(model, tmp_path, gating_of(model, Threshold(), COUNT), **options)
    assert drawn == [(step, 0) for step in range(5)]


@pytest.mark.parametrize("gate", [HardConcrete(), Bernoulli()], ids=["hard_concrete", "bernoulli"])
def test_gradients_of_many_samples_add_up_as_autograd_has_it(tmp_path: Path, gate: Gate) -> None:
    """One step of SGD on the scores, over accumulated batches of three passes each, against plain PyTorch."""
    model, reference = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    data = toy_data(8)
    gating = gating_of(model, gate, L0(weight=0.0))
    before = {
        group.name: s.detach().clone() for group, s in zip(gating.units.groups, gating.scores, strict=True)
    }
    caught: dict[str, torch.Tensor] = {}
    collect = gating.collect

    def spy(share: float, scale: float = 1.0) -> None:
        collect(share, scale)
        for group, score in zip(gating.units.groups, gating.scores, strict=True):
            caught[group.name] = score.grad.clone()

    gating.collect = spy  # type: ignore[method-assign]
    options = {"steps": 1, "batch_size": 4, "accumulate": 2, "dropout": 0.0, "clip": 0.0}
    toy_search(model, tmp_path, gating, data=data, objective=ManyPasses(), **options)

    scores = {name: score.clone().requires_grad_() for name, score in before.items()}
    own = dict(reference.base_model.named_parameters())
    number, collate = 0, Collate(TOKENIZER)
    for indices in ShuffledBatches(data.lengths, 4, 1):
        batch = collate([data[index] for index in indices])
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        for _ in range(3):
            generator = torch.Generator().manual_seed(_seed(1, 0, number))
            gates = {}
            for name, score in scores.items():
                if isinstance(gate, HardConcrete):
                    noise = torch.empty_like(score).uniform_(EDGE, 1 - EDGE, generator=generator)
                    gates[name] = (1.2 * torch.sigmoid((noise.logit() + score) * 1.5) - 0.1).clamp(0, 1)
                else:
                    drawn = torch.bernoulli(torch.sigmoid(score.detach()), generator=generator)
                    gates[name] = drawn + score - score.detach()  # straight through
            weights = {f"bert.{name}": own[name].detach() * g for name, g in gating.units.spread(gates)}
            logits = functional_call(reference, weights, kwargs=inputs).logits
            (F.cross_entropy(logits, batch["labels"]) / 6).backward()
            number += 1
    assert number == 6
    for name, score in scores.items():
        assert torch.allclose(caught[name], score.grad, atol=1e-6), name
    assert any(gradient.abs().max() > 1e-3 for gradient in caught.values())


class Killed(BaseException):
    """Stands for a kill inside one process."""


@pytest.mark.parametrize(
    ("gate", "budget"), [(HardConcrete(), L0()), (Threshold(), COUNT)], ids=["hard_concrete", "threshold"]
)
def test_equal_seeds_and_resumed_searches_give_equal_bits(tmp_path: Path, gate: Gate, budget: Budget) -> None:
    options = {"epochs": 1.8, "warmup": 0.2, "weight_decay": 0.1}

    def search(folder: str, **more: Any) -> tuple[Gating, GateLog]:
        model = tiny("bert", num_labels=2)
        gating = gating_of(model, gate, budget)
        return gating, toy_search(model, tmp_path / folder, gating, **options, **more)

    def kill(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == 6:
            raise Killed

    whole, log = search("whole")
    torch.rand(3)
    with pytest.raises(Killed):
        search("killed", checkpoint_minutes=0, progress=kill)
    checkpoint = tmp_path / "killed" / "checkpoints" / "step-5"
    saved = sum(path.stat().st_size for path in checkpoint.glob("model.safetensors"))
    assert saved < 1.1 * 4 * whole.units.count + 10_000  # the scores alone, and not the model
    resumed, rest = search("killed")
    assert rest.resumed_from == 5
    assert same_scores(whole, resumed)
    assert torch.equal(whole.cuts, resumed.cuts)
    assert (rest.curve, rest.sparsities) == (log.curve, log.sparsities)
    other = tiny("bert", num_labels=2)
    moved = gating_of(other, gate, budget)
    toy_search(other, tmp_path / "other", moved, seed=2, **options)
    assert not same_scores(whole, moved)


def test_a_checkpoint_of_other_gates_is_refused(tmp_path: Path) -> None:
    def kill(step: int, steps: int, figures: dict[str, float]) -> None:
        if step == 3:
            raise Killed

    model = tiny("bert", num_labels=2)
    with pytest.raises(Killed):
        toy_search(
            model, tmp_path, gating_of(model, HardConcrete(), L0()), checkpoint_minutes=0, progress=kill
        )
    model = tiny("bert", num_labels=2)
    with pytest.raises(TombolaError, match=r"another run \(its budget differ\)"):
        toy_search(model, tmp_path, gating_of(model, HardConcrete(), L0(weight=0.1)))


@pytest.mark.parametrize("schedule", ["fixed", "cubic", "stepwise"])
def test_the_scores_of_a_search_give_its_final_mask_at_the_target(tmp_path: Path, schedule: Any) -> None:
    # Regression: the released code saves the mask of the first sparsity, not of the last.
    model = tiny("bert", num_labels=2)
    budget = Exact(schedule=schedule, initial=0.0 if schedule == "fixed" else 0.2, reset_every=4)
    gating = gating_of(model, Threshold(), budget, sparsity=0.6)
    before = gating.mask()
    log = toy_search(model, tmp_path, gating, learning_rate=0.01)
    final = gating.mask()
    assert final.removed == int(0.6 * final.count + 0.5)
    assert final == draw(gating.learned(), sparsity=0.6)
    assert final != before
    assert log.sparsities[-1].sparsity == pytest.approx(final.sparsity)


class Exploding(CrossEntropy):
    """Not a number from the first step on."""

    def loss(self, model, batch):
        return super().loss(model, batch) * float("nan")


def test_a_search_that_diverges_says_so_and_gives_the_model_back(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=2)
    with pytest.raises(TrainingDiverged, match="step 1 at learning rate"):
        toy_search(model, tmp_path, gating_of(model, HardConcrete(), L0()), objective=Exploding())
    assert same_weights(model, tiny("bert", num_labels=2))


@pytest.mark.thorough
@pytest.mark.parametrize(("accumulate", "sample"), [(1, "pass"), (2, "pass"), (2, "step")])
def test_two_processes_search_as_one_does(tmp_path: Path, accumulate: int, sample: str) -> None:
    gating, _ = run(tmp_path / "one", 8, accumulate, sample)
    whole = gating.learned()
    run_together("tests.training.gated_parallel", tmp_path / "two", accumulate, sample)
    halves = Scores.load(tmp_path / "two" / "scores.safetensors")
    assert all(torch.allclose(halves[name], score, atol=1e-5) for name, score in whole.items())
