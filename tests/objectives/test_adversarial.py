"""FreeLB and PGD against naive versions that perturb `inputs_embeds`, and the perturbation's norms."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedModel

from tests.tiny import MODEL_TYPES, tiny, token_ids
from tombola.objectives import Batch, Objective
from tombola.objectives.building import objective_of
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.objectives.freelb import FreeLB
from tombola.objectives.perturbation import Perturbation, perturbed
from tombola.objectives.pgd import PGD
from tombola.objectives.poe import PoELoss
from tombola.objectives.settings import Adversary, adversaries

LENGTHS = torch.tensor([7, 4, 6])
SIZE = 16


def padded() -> dict[str, Tensor]:
    """Three examples of 7, 4 and 6 tokens, with token types and a bias."""
    real = torch.arange(7) < LENGTHS[:, None]
    return {
        "input_ids": token_ids().where(real, 0),
        "attention_mask": real.long(),
        "token_type_ids": (torch.arange(7) >= 3).long().expand(3, 7),
        "labels": torch.tensor([0, 1, 2]),
        "bias": torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]).log(),
    }


def perturbation(seed: int = 0, **adversary: object) -> Perturbation:
    """The perturbation of the padded batch."""
    torch.manual_seed(seed)
    embedding = tiny("bert").get_input_embeddings()
    return Perturbation(embedding, padded(), Adversary.model_validate(adversary))


def lengths(delta: Tensor) -> Tensor:
    """Frobenius norms of the examples."""
    return delta.flatten(1).norm(dim=1)


def gradients(model: PreTrainedModel) -> dict[str, Tensor]:
    """Of all parameters that have one; they are taken away from the model."""
    found = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    return found


def stepped(objective: Objective, model: PreTrainedModel, batch: Batch, seed: int = 3) -> tuple[Tensor, dict]:
    """The loss of one step and the gradients that it leaves."""
    torch.manual_seed(seed)
    loss = objective.step(model, batch, Tensor.backward)
    return loss, gradients(model)


def plain(logits: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy."""
    return torch.nn.functional.cross_entropy(logits, batch["labels"])


def naive(
    model: PreTrainedModel,
    batch: Batch,
    adversary: Adversary,
    loss_of: Callable[[Tensor, Batch], Tensor] = plain,
    seed: int = 3,
) -> tuple[Tensor, dict]:
    """FreeLB or PGD as a textbook has it, without projection, by `inputs_embeds`."""
    torch.manual_seed(seed)
    real = batch["attention_mask"][..., None].float()
    delta = torch.empty(3, 7, SIZE).uniform_(-1, 1) * real * adversary.initial
    if adversary.norm == "l2":
        delta = delta / (LENGTHS * SIZE).sqrt()[:, None, None]

    def loss_at(delta: Tensor) -> Tensor:
        words = model.get_input_embeddings().weight[batch["input_ids"]]
        other = {name: batch[name] for name in ("attention_mask", "token_type_ids")}
        return loss_of(model(inputs_embeds=words + delta, **other).logits, batch)

    total = torch.zeros(())
    freelb = adversary.kind == "freelb"
    for _ in range(adversary.steps):
        delta = delta.detach().requires_grad_()
        loss = loss_at(delta)
        loss.backward()
        if freelb:
            total += loss.detach()
        else:
            model.zero_grad()
        assert delta.grad is not None
        if adversary.norm == "linf":
            size = delta.grad.abs().amax(dim=(1, 2))
            unit = delta.grad / size[:, None, None] if freelb else delta.grad.sign()
        else:
            unit = delta.grad / lengths(delta.grad)[:, None, None]
        delta = delta + adversary.step_size * unit * real
    if freelb:
        found = gradients(model)
        return total / adversary.steps, {name: g / adversary.steps for name, g in found.items()}
    loss = loss_at(delta.detach())
    loss.backward()
    return loss.detach(), gradients(model)


def assert_same(one: tuple[Tensor, dict], other: tuple[Tensor, dict]) -> None:
    """Equal losses and gradients."""
    torch.testing.assert_close(one[0], other[0])
    assert one[1].keys() == other[1].keys()
    for name in one[1]:
        torch.testing.assert_close(one[1][name], other[1][name], msg=name)


def test_the_start_is_small_random_and_zero_at_padding() -> None:
    delta = perturbation().values
    real = padded()["attention_mask"].bool()
    assert not delta[~real].any()
    assert delta[real].ne(0).all()
    bound = 0.05 / (LENGTHS * SIZE).sqrt()
    assert (delta.abs().amax(dim=(1, 2)) <= bound).all()
    assert (delta.abs().amax(dim=(1, 2)) > 0.9 * bound).all()
    assert (lengths(delta) < 0.05).all()
    assert lengths(delta).tolist() == pytest.approx([0.05 / 3**0.5] * 3, rel=0.15)
    assert not torch.equal(delta, perturbation(seed=1).values)
    assert torch.equal(delta, perturbation().values)


def test_a_batch_without_padding_needs_no_attention_mask() -> None:
    torch.manual_seed(0)
    batch = {"input_ids": token_ids()}
    one = Perturbation(tiny("bert").get_input_embeddings(), batch, Adversary()).values
    torch.manual_seed(0)
    whole = {**batch, "attention_mask": torch.ones(3, 7, dtype=torch.int64)}
    assert torch.equal(one, Perturbation(tiny("bert").get_input_embeddings(), whole, Adversary()).values)


def test_a_step_has_its_length_whatever_the_gradients() -> None:
    delta = perturbation(initial=0)
    gradient = torch.randn(3, 7, SIZE)
    gradient[1] *= 1e-30
    delta.ascend(gradient)
    assert lengths(delta.values).tolist() == pytest.approx([0.03] * 3)
    assert not delta.values[padded()["attention_mask"] == 0].any()
    kept = gradient[0] * padded()["attention_mask"][0][:, None]
    torch.testing.assert_close(delta.values[0], 0.03 * kept / kept.norm())
    before = delta.values
    delta.ascend(torch.zeros(3, 7, SIZE))
    assert torch.equal(delta.values, before)


def test_freelb_in_the_largest_norm_steps_along_the_gradient_and_pgd_by_its_signs() -> None:
    real = padded()["attention_mask"][..., None]
    gradient = torch.randn(3, 7, SIZE) * torch.tensor([1.0, 1e-30, 1e3])[:, None, None]
    freelb = perturbation(initial=0, norm="linf")
    freelb.ascend(gradient)
    largest = (real * gradient).abs().amax(dim=(1, 2), keepdim=True)
    torch.testing.assert_close(freelb.values, 0.03 * real * gradient / largest)
    pgd = perturbation(initial=0, norm="linf", kind="pgd")
    pgd.ascend(gradient)
    torch.testing.assert_close(pgd.values, 0.03 * gradient.sign() * real)


@pytest.mark.parametrize("kind", ["freelb", "pgd"])
def test_the_start_in_the_largest_norm_is_uniform_whatever_the_length(kind: str) -> None:
    delta = perturbation(norm="linf", kind=kind).values
    real = padded()["attention_mask"].bool()
    assert not delta[~real].any()
    for example, kept in zip(delta, real, strict=True):
        assert 0.95 * 0.05 < example[kept].abs().max() <= 0.05
        assert example[kept].abs().mean().item() == pytest.approx(0.025, rel=0.25)


def test_an_overflowed_gradient_leaves_its_example_alone() -> None:
    delta = perturbation(initial=0)
    gradient = torch.randn(3, 7, SIZE)
    gradient[1] = float("inf")
    gradient[2, 0, 0] = float("nan")
    delta.ascend(gradient)
    assert delta.values.isfinite().all()
    assert not delta.values[1].any()
    assert lengths(delta.values)[0].item() == pytest.approx(0.03)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_projection_keeps_the_perturbation_in_the_ball(norm: str) -> None:
    free, held = perturbation(norm=norm), perturbation(norm=norm, radius=0.07)
    gradient = torch.randn(3, 7, SIZE)
    for _ in range(4):
        free.ascend(gradient)
        held.ascend(gradient)
    size = lengths if norm == "l2" else lambda delta: delta.abs().amax(dim=(1, 2))
    assert (size(free.values) > 0.1).all()
    assert size(held.values).tolist() == pytest.approx([0.07] * 3)
    within = perturbation(norm=norm, radius=10.0)
    for _ in range(4):
        within.ascend(gradient)
    torch.testing.assert_close(within.values, free.values)


@pytest.mark.parametrize("kind", ["freelb", "pgd"])
@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("steps", [1, 3])
def test_loss_and_gradients_are_those_of_the_textbook(kind: str, steps: int, norm: str) -> None:
    model, batch = tiny("bert", num_labels=3), padded()
    adversary = Adversary(kind=kind, steps=steps, step_size=0.3, norm=norm)
    objective = adversaries[kind].build(CrossEntropy(), adversary)
    by_step = stepped(objective, model, batch)
    assert_same(by_step, naive(model, batch, adversary))
    torch.manual_seed(3)
    loss = objective.loss(model, batch)
    loss.backward()
    assert_same(by_step, (loss.detach(), gradients(model)))


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_is_perturbed_through_its_own_inputs(model_type: str) -> None:
    model, batch = tiny(model_type, num_labels=3), padded()
    if model_type in (
        "distilbert",
        "modernbert",
        "roberta",
        "xlm-roberta",
        "xlm-roberta-xl",
        "camembert",
        "mpnet",
    ):
        del batch["token_type_ids"]
    clean = CrossEntropy().loss(model, batch)
    still = Adversary(steps=1, initial=0)
    assert FreeLB(CrossEntropy(), still).loss(model, batch) == clean
    torch.manual_seed(0)
    for kind in (FreeLB, PGD):
        objective = kind(CrossEntropy(), Adversary(steps=2, step_size=1e-2, initial=0))
        assert objective.loss(model, batch) > clean


def test_one_point_without_ascent_is_cross_entropy_at_the_random_start() -> None:
    model, batch = tiny("bert", num_labels=3), padded()
    adversary = Adversary(steps=1)
    torch.manual_seed(3)
    with perturbed(model, batch, adversary):
        expected = CrossEntropy().loss(model, batch)
    loss, _ = stepped(FreeLB(CrossEntropy(), adversary), model, batch)
    assert loss == expected
    assert loss != CrossEntropy().loss(model, batch)


def test_token_types_reach_the_model() -> None:
    """[bug] The release drops them in the adversarial passes."""
    model, batch = tiny("bert", num_labels=3), padded()
    other = {**batch, "token_type_ids": 1 - batch["token_type_ids"]}
    objective = FreeLB(CrossEntropy(), Adversary(steps=2, initial=0))
    assert objective.loss(model, batch) != objective.loss(model, other)


class Watch(Objective):
    """Cross-entropy that notes at each pass what is added to the word embeddings, and whether that is tracked."""

    def __init__(self) -> None:
        self.deltas: list[Tensor] = []
        self.tracked: list[bool] = []

    def loss(self, model: PreTrainedModel, batch: Batch) -> Tensor:
        """As ever."""
        embedding = model.get_input_embeddings()
        delta = embedding(batch["input_ids"]) - embedding.weight.detach()[batch["input_ids"]]
        self.deltas.append(delta.detach())
        self.tracked.append(delta.requires_grad)
        return CrossEntropy().loss(model, batch)


@pytest.mark.parametrize(("kind", "passes"), [(FreeLB, 4), (PGD, 5)])
def test_passes_and_norms_over_the_ascent(kind: type[FreeLB], passes: int) -> None:
    model, batch, watch = tiny("bert", num_labels=3), padded(), Watch()
    stepped(kind(watch, Adversary(steps=4, initial=0)), model, batch)
    assert len(watch.deltas) == passes
    assert not watch.deltas[0].any()
    for before, after in pairwise(watch.deltas):
        assert lengths(after - before).tolist() == pytest.approx([0.03] * 3, rel=1e-3)
        assert not after[batch["attention_mask"] == 0].any()


@pytest.mark.parametrize("kind", [FreeLB, PGD])
def test_the_last_point_needs_no_gradient_of_the_perturbation(kind: type[FreeLB]) -> None:
    model, batch, watch = tiny("bert", num_labels=3), padded(), Watch()
    model.get_input_embeddings().requires_grad_(False)
    stepped(kind(watch, Adversary(steps=3)), model, batch)
    assert watch.tracked[-1] is False
    assert all(watch.tracked[:-1])


@pytest.mark.parametrize("kind", [FreeLB, PGD])
def test_a_frozen_backbone_is_attacked_and_gets_no_gradient(kind: type[FreeLB]) -> None:
    model, batch = tiny("bert", num_labels=3), padded()
    free = stepped(kind(CrossEntropy(), Adversary(steps=3)), model, batch)
    model.base_model.requires_grad_(False)
    loss, found = stepped(kind(CrossEntropy(), Adversary(steps=3)), model, batch)
    assert loss == free[0]
    assert set(found) == {"classifier.weight", "classifier.bias"}
    torch.testing.assert_close(found["classifier.weight"], free[1]["classifier.weight"])


def test_nothing_of_the_attack_is_left_behind() -> None:
    model, batch = tiny("bert", num_labels=3), padded()
    clean = CrossEntropy().loss(model, batch)
    stepped(FreeLB(CrossEntropy(), Adversary()), model, batch)
    assert CrossEntropy().loss(model, batch) == clean
    with pytest.raises(KeyError, match="labels"):
        FreeLB(CrossEntropy(), Adversary()).loss(model, {"input_ids": batch["input_ids"]})
    assert CrossEntropy().loss(model, batch) == clean


@pytest.mark.bf16
def test_the_perturbation_has_32_bits_under_bf16_autocast() -> None:
    model, batch, watch = tiny("bert", num_labels=3), padded(), Watch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, found = stepped(FreeLB(watch, Adversary(steps=3, step_size=1e-3, initial=0)), model, batch)
    assert {delta.dtype for delta in watch.deltas} == {torch.float32}
    assert lengths(watch.deltas[1]).tolist() == pytest.approx([1e-3] * 3, rel=1e-2)
    assert loss.isfinite()
    assert found


@pytest.fixture
def _one_process_group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("_one_process_group")
@pytest.mark.parametrize("kind", [FreeLB, PGD])
def test_a_data_parallel_model_gets_the_same_gradients(kind: type[FreeLB]) -> None:
    model, batch = tiny("bert", num_labels=3), padded()
    objective = kind(CrossEntropy(), Adversary(steps=3))
    alone = stepped(objective, model, batch)
    wrapped = DistributedDataParallel(model)
    for _ in range(2):
        torch.manual_seed(3)
        loss = objective.step(wrapped, batch, Tensor.backward)
        assert_same((loss, gradients(model)), alone)


def poe(logits: Tensor, batch: Batch) -> Tensor:
    """The product of experts, written out."""
    product = logits.softmax(-1) * batch["bias"].exp()
    return -(product / product.sum(-1, keepdim=True))[torch.arange(3), batch["labels"]].log().mean()


@pytest.mark.parametrize("kind", ["freelb", "pgd"])
def test_an_adversary_of_r_drop_of_experts_is_what_the_hand_computes(kind: str) -> None:
    """Without dropout both passes agree, so R-Drop adds nothing; δ is the same for both."""
    model, batch = tiny("bert", num_labels=3), padded()
    adversary = Adversary(kind=kind, steps=3, step_size=0.3)
    objective = objective_of(PoELoss(), adversary, r_drop=1.0)
    assert_same(stepped(objective, model, batch), naive(model, batch, adversary, poe))


def test_with_dropout_all_of_it_trains() -> None:
    model, batch = tiny("bert", num_labels=3).train(), padded()
    objective = objective_of(PoELoss(anneal=(1.0, 0.0)), Adversary(steps=3), r_drop=1.0)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    torch.manual_seed(0)
    losses = []
    for number in range(20):
        objective.at(number / 20)
        losses.append(objective.step(model, batch, Tensor.backward).item())
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.5 * losses[0]
