"""Scorers against plain PyTorch."""

import pytest
import torch

from tests.tiny import tiny, token_ids
from tombola.masks import Units, draw
from tombola.search import Evidence, searches
from tombola.search.grasp import Grasp, grasp
from tombola.search.magnitude import Magnitude, magnitude
from tombola.search.random import Random, random

pytestmark = pytest.mark.portable


def batches(count):
    for seed in range(count):
        yield {"input_ids": token_ids(4, 7, seed), "labels": torch.tensor([0, 1, 1, 0])}


EVIDENCE = Evidence(seed=5, batches=batches)


def test_every_search_is_registered_with_a_line_about_it():
    assert set(searches) >= {"magnitude", "random", "iterative", "grasp", "given"}
    assert all(search.about.endswith(".") for _, search in searches.items())


def test_magnitude_of_weights_is_their_absolute_value():
    model = tiny("bert")
    scores = magnitude(Magnitude(), model, Units.of(model, "weight"), EVIDENCE)
    for name, weight in Units.of(model, "weight").matrices(model).items():
        assert torch.equal(scores[name.removesuffix(".weight")], weight.detach().abs())


def test_magnitude_of_a_head_is_the_mean_over_its_weights():
    model = tiny("bert")
    scores = magnitude(Magnitude(units="head"), model, Units.of(model, "head"), EVIDENCE)
    attention = model.bert.encoder.layer[1].attention
    own = attention.self
    rows = [part.weight[4:8].abs().sum() for part in (own.query, own.key, own.value)]
    total = sum(rows) + attention.output.dense.weight[:, 4:8].abs().sum()
    assert scores["layers.1.heads"][1].item() == pytest.approx(total.item() / (4 * 4 * 16), rel=1e-5)


def test_random_masks_are_exact_nested_and_of_the_seed_alone():
    units = Units.of(tiny("bert"), "weight")
    scores = random(Random(), None, units, EVIDENCE)
    half, most = draw(scores, sparsity=0.5), draw(scores, sparsity=0.9)
    assert half.removed == units.count // 2
    assert half.contains(most)
    torch.rand(3)
    assert draw(random(Random(), None, units, EVIDENCE), sparsity=0.5) == half
    assert draw(random(Random(), None, units, Evidence(6, batches)), sparsity=0.5) != half


def test_grasp_is_the_weight_times_the_hessian_times_the_gradient():
    model = tiny("bert")
    units = Units.of(model, "weight")
    scores = grasp(Grasp(batches=3), model, units, EVIDENCE)
    matrices = units.matrices(model)

    def gradient(point):
        parameters = {f"bert.{name}": value for name, value in point.items()}
        total = None
        for batch in batches(3):
            loss = torch.func.functional_call(model, parameters, kwargs=batch).loss
            grads = torch.autograd.grad(loss, list(point.values()))
            total = grads if total is None else [a + b for a, b in zip(total, grads, strict=True)]
        return dict(zip(point, total, strict=True))

    start = {name: weight.detach().double().requires_grad_() for name, weight in matrices.items()}
    model.double()
    g = gradient(start)
    step = 1e-5
    ahead = gradient({n: (w + step * g[n]).detach().requires_grad_() for n, w in start.items()})
    behind = gradient({n: (w - step * g[n]).detach().requires_grad_() for n, w in start.items()})
    for name, weight in start.items():
        hessian_gradient = (ahead[name] - behind[name]) / (2 * step)
        expected = (weight * hessian_gradient).detach().float()
        found = scores[name.removesuffix(".weight")]
        assert torch.allclose(found, expected, rtol=1e-2, atol=1e-5 + 1e-3 * float(expected.abs().max()))
