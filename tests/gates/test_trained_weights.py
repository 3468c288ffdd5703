"""Weights that train together with their gates: gradients against plain autograd, and what the model holds when."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from tests.gates.test_gating import CASES, LABELS, gating_of, loss_of
from tests.tiny import tiny, token_ids
from tombola.gates import Bernoulli, Exact, Sign, Threshold
from tombola.masks.layout import parameters_of


@pytest.mark.parametrize(("model_type", "granularity"), CASES)
def test_gradients_of_all_weights_are_those_of_autograd_through_the_gates(model_type, granularity):
    model, reference = tiny(model_type, num_labels=2), tiny(model_type, num_labels=2)
    gating = gating_of(model, granularity)
    gating.hold(model, train_weights=True)
    totals = {name: torch.zeros_like(weight) for name, weight in reference.named_parameters()}
    prefix = f"{reference.base_model_prefix}."
    for number in range(2):
        gating.sample(5, number)
        factors = dict(zip((group.name for group in gating.units.groups), gating._factors, strict=True))
        loss_of(model).backward()
        weights = dict(reference.named_parameters())
        spread = {prefix + name: factor for name, factor in gating.units.spread(factors)}
        gated = {name: weights[name] * factor for name, factor in spread.items()}
        plain = F.cross_entropy(functional_call(reference, gated, (token_ids(),)).logits, LABELS)
        gradients = torch.autograd.grad(plain, list(weights.values()), allow_unused=True)
        for name, gradient in zip(weights, gradients, strict=True):
            totals[name] += 0 if gradient is None else gradient
        gating.gather()
    gating.collect(share=0.0)
    largest = max(total.abs().max() for total in totals.values())
    for name, weight in model.named_parameters():
        wanted = totals[name]
        found = torch.zeros_like(wanted) if weight.grad is None else weight.grad
        assert torch.allclose(found, wanted, atol=1e-5 * largest, rtol=1e-4), name
        assert torch.equal(weight, reference.get_parameter(name))  # the weights themselves are back


@pytest.mark.parametrize("gate", [Threshold(), Sign(), Bernoulli()])
def test_gates_that_let_gradients_straight_through_give_shut_weights_none(gate):
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "weight", gate, Exact(), sparsity=0.5)
    gating.hold(model, train_weights=True)
    gating.sample(0)
    shut = [factors == 0 for factors in gating._factors]
    assert any(one.any() for one in shut)
    loss_of(model).backward()
    gating.collect(share=0.0)
    parameters = parameters_of(model)
    for group, one in zip(gating.units.groups, shut, strict=True):
        for part in (*group.parts, *group.biases):
            gradient = part.region(parameters[part.tensor].grad, group.count)
            assert not (gradient * part.spread(one.float(), gradient.dim())).any()
            assert gradient.any()
    assert any(score.grad[one].any() for score, one in zip(gating.scores, shut, strict=True))


def test_what_the_optimizer_moves_is_what_the_next_gates_are_laid_over():
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "weight")
    gating.hold(model, train_weights=True)
    assert all(parameter.requires_grad for parameter in model.parameters())
    gating.sample(0)
    loss_of(model).backward()
    gating.collect(share=0.0)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    moved = {name: value.clone() for name, value in model.state_dict().items()}
    model.zero_grad()
    gating.sample(1)
    live = parameters_of(model)
    for group, factors in zip(gating.units.groups, gating._factors, strict=True):
        (part,) = group.parts
        name = f"bert.{part.tensor}"
        assert torch.equal(live[part.tensor], moved[name] * factors)
    gating.release()  # in the middle of a step: the gates come off
    assert all(torch.equal(value, moved[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("gate", [Threshold(), Sign()])
def test_folded_gates_remove_exactly_the_requested_units(gate):
    """Also in the middle of a search, after scores have crossed the cut."""
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "weight", gate, Exact(schedule="cubic"), sparsity=0.4)
    with torch.no_grad():
        for score in gating.scores:
            score.add_(0.5 * torch.rand_like(score))
    plain = {name: value.clone() for name, value in parameters_of(model).items()}
    gating.fold(model)
    for name, kept in gating.units.spread(gating.draw(0.4)):
        assert torch.equal(parameters_of(model)[name], plain[name] * kept)
