"""The arithmetic of gates: published numbers at the start, and derivatives against autograd."""

import math

import pytest
import torch
from pydantic import ValidationError

from tombola.gates import Bernoulli, HardConcrete, Sign, Threshold
from tombola.gates.hard_concrete import EDGE

MANY = 400_000


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def started(gate, count=MANY):
    magnitudes = torch.rand(count, generator=generator())
    return gate.start(magnitudes, magnitudes < 0.3, generator())


def sample(gate, margin, seed=0):
    return gate.sample(margin, torch.empty_like(margin), generator(seed))


def test_hard_concrete_starts_at_log_five_where_the_gate_without_noise_is_nine_tenths():
    scores, cut = started(HardConcrete())
    assert cut == 0.0
    assert scores[0].item() == pytest.approx(math.log(5), abs=1e-6)
    assert (1.2 * torch.sigmoid(scores[0]) - 0.1).item() == pytest.approx(0.9, abs=1e-6)
    half, _ = started(HardConcrete(initial=0.5))
    assert half[0].item() == pytest.approx(0.0, abs=1e-6)


def test_hard_concrete_samples_have_the_published_statistics():
    gate = HardConcrete()
    scores, _ = started(gate)
    sampled = sample(gate, scores)
    assert sampled.mean().item() == pytest.approx(0.807, abs=0.002)
    assert sampled.eq(0).float().mean().item() == pytest.approx(0.039, abs=0.001)
    assert sampled.eq(1).float().mean().item() == pytest.approx(0.503, abs=0.003)
    assert gate.openness(scores[:1]).item() == pytest.approx(0.96114, abs=1e-5)
    assert gate.openness(scores[:1]).item() == pytest.approx(
        1 / (1 + math.exp(-math.log(5) - 1.5986)), abs=1e-5
    )


def test_hard_concrete_noise_is_uniform_within_its_edges():
    gate = HardConcrete(stretch=(-1e-6, 1 + 1e-6), temperature=1.0)
    sampled = sample(gate, torch.zeros(MANY))  # the sigmoid undoes the logit: the noise itself
    assert sampled.min() >= EDGE * 0.99
    assert sampled.max() <= 1 - EDGE * 0.99
    assert sampled.mean().item() == pytest.approx(0.5, abs=0.002)


@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_hard_concrete_gradient_is_autograds(spread):
    gate = HardConcrete()
    scores = (spread * torch.randn(5000, generator=generator(1))).requires_grad_()
    noise = torch.empty(5000).uniform_(EDGE, 1 - EDGE, generator=generator(2))
    plain = (1.2 * torch.sigmoid((torch.logit(noise) + scores) / (2 / 3)) - 0.1).clamp(0, 1)
    upstream = torch.randn(5000, generator=generator(3))
    plain.backward(upstream)
    sampled = sample(gate, scores.detach(), seed=2)
    assert torch.allclose(sampled, plain.detach(), atol=1e-6)
    ours = gate.back(upstream.clone(), sampled, scores.detach())
    assert torch.allclose(ours, scores.grad, atol=1e-5)
    assert ours[sampled.eq(0) | sampled.eq(1)].abs().max() == 0


@pytest.mark.parametrize("gate", [HardConcrete(), Bernoulli()])
def test_openness_slope_is_the_derivative_of_openness(gate):
    scores = torch.linspace(-4, 4, 101).requires_grad_()
    gate.openness(scores).sum().backward()
    assert torch.allclose(gate.openness_slope(scores.detach()), scores.grad, atol=1e-6)


def test_openness_is_how_often_a_gate_is_not_shut():
    for gate in (HardConcrete(), Bernoulli()):
        for score in (-1.0, 0.3, 2.0):
            scores = torch.full((MANY,), score)
            often = sample(gate, scores).gt(0).double().mean().item()
            assert often == pytest.approx(gate.openness(scores[:1]).item(), abs=0.003)


def test_hard_initialisation_has_two_values_and_a_cut_between():
    magnitudes = torch.tensor([0.5, 0.1, 0.3, 0.2])
    removed = torch.tensor([False, True, False, True])
    scores, cut = Threshold().start(magnitudes, removed, generator())
    assert scores.tolist() == pytest.approx([0.02, 0.0, 0.02, 0.0])
    assert cut == 0.01
    assert sample(Threshold(), scores - cut).tolist() == [1, 0, 1, 0]


def test_soft_initialisation_cuts_magnitudes_at_the_kth_smallest():
    magnitudes = torch.tensor([0.5, 0.1, 0.3, 0.2])
    scores, cut = Threshold(initial="soft").start(magnitudes, magnitudes < 0.25, generator())
    assert torch.equal(scores, magnitudes)
    assert cut == pytest.approx(0.2)
    assert sample(Threshold(), scores - cut).tolist() == [1, 0, 1, 0]


def test_soft_initialisation_opens_exactly_the_others_even_where_magnitudes_tie():
    """Weights that were once rounded, to 16 bits for example, tie often."""
    magnitudes = torch.tensor([0.25, 0.0, 0.25, 0.25, 0.5])
    removed = torch.tensor([False, True, True, True, False])
    scores, cut = Threshold(initial="soft").start(magnitudes, removed, generator())
    assert torch.equal(scores > cut, ~removed)
    assert torch.allclose(scores, magnitudes)
    scores, cut = Threshold(initial="soft").start(magnitudes, torch.zeros(5, dtype=torch.bool), generator())
    assert (scores > cut).all()


def test_random_initialisation_shuts_as_many_elsewhere():
    removed = torch.arange(1000).reshape(20, 50) < 300
    scores, cut = Threshold(initial="random").start(torch.rand(20, 50), removed, generator())
    shut = scores < cut
    assert shut.sum() == 300
    assert not torch.equal(shut, removed)


def test_threshold_passes_gradients_straight_through_and_sign_only_inside_its_ends():
    margin, upstream = torch.tensor([-1.0, -0.5, 0.5, 1.0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    sampled = sample(Threshold(), margin)
    assert sampled.tolist() == sample(Sign(), margin).tolist() == [0, 0, 1, 1]
    assert Threshold().back(upstream.clone(), sampled, margin).tolist() == [1, 2, 3, 4]
    assert Sign().back(upstream.clone(), sampled, margin).tolist() == [0, 2, 3, 0]


def test_sign_starts_on_both_sides_of_zero():
    scores, cut = Sign().start(torch.rand(2), torch.tensor([True, False]), generator())
    assert (scores.tolist(), cut) == (pytest.approx([-0.01, 0.01]), 0.0)


def test_bernoulli_gates_are_ones_and_zeros_with_a_straight_gradient():
    gate = Bernoulli(initial=0.7)
    scores, _ = started(gate)
    sampled = sample(gate, scores)
    assert set(sampled.unique().tolist()) == {0.0, 1.0}
    assert sampled.mean().item() == pytest.approx(0.7, abs=0.003)
    upstream = torch.randn(100, generator=generator(4))
    assert torch.equal(gate.back(upstream.clone(), sampled[:100], scores[:100]), upstream)


def test_a_stretch_that_reaches_neither_end_is_refused():
    with pytest.raises(ValidationError, match="below 0 and one above 1"):
        HardConcrete(stretch=(0.1, 1.1))
