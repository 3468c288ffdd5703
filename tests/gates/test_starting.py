"""First scores by importance: their order, and as many gates open as without it."""

import pytest
import torch

from tests.tiny import tiny
from tombola.gates import L0, Bernoulli, Exact, Gate, Gating, HardConcrete, Lagrangian, Sign, Threshold
from tombola.gates.starting import KNOTS, _places
from tombola.masks import Scores, Units, draw

GATES = [HardConcrete(), Bernoulli(), Sign(), Sign(initial=0.9), Threshold(), Threshold(initial="soft")]


def importance_of(units: Units, seed: int = 0) -> Scores:
    """Long-tailed values, as Taylor scores are."""
    generator = torch.Generator().manual_seed(seed)
    return Scores(units, {g.name: torch.randn(g.shape, generator=generator).exp() ** 3 for g in units.groups})


def started(gate: Gate, units: str, budget=None, scope="global", ordered=True):
    model = tiny("bert", num_labels=2)
    found = Units.of(model, units)
    importance = importance_of(found)
    gating = Gating(
        found,
        model,
        gate,
        budget or L0(),
        seed=1,
        sparsity=0.3,
        scope=scope,
        importance=importance if ordered else None,
    )
    return gating, importance


def per_weight(importance: Scores) -> list[torch.Tensor]:
    return [importance[group.name].flatten() / group.unit_weights for group in importance.units.groups]


@pytest.mark.parametrize("budget", [L0(), Exact(), Lagrangian()], ids=lambda budget: budget.kind)
@pytest.mark.parametrize("units", ["weight", "head", "neuron", "head+neuron", "layer", "row"])
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: f"{gate.kind}-{gate.initial}")
def test_scores_are_in_the_order_of_importance_and_as_many_gates_are_open(gate, units, budget):
    gating, importance = started(gate, units, budget)
    plain, _ = started(gate, units, budget, ordered=False)
    assert gating.openness() == pytest.approx(plain.openness(), abs=1e-5)
    wanted = torch.cat(per_weight(importance))
    scores = torch.cat([score.detach().flatten() for score in gating.scores])
    cuts = torch.cat(
        [cut.expand(score.numel()) for cut, score in zip(gating.cuts, gating.scores, strict=True)]
    )
    margins = scores - cuts if gate.kind != "threshold" or gate.initial == "hard" else scores
    ordered = margins[wanted.argsort()]
    assert (ordered.diff() >= 0).all()
    if gate != Sign(initial=0.9):  # whose scores end at 1
        assert ordered.unique().numel() > 0.9 * ordered.numel()
    if budget.kind == "exact" and not gate.noisy:
        assert gating.mask() == draw(Scores(gating.units, dict(_named(gating, importance))), sparsity=0.3)


def _named(gating, importance):
    for group, values in zip(gating.units.groups, per_weight(importance), strict=True):
        yield group.name, values.view(group.shape)


def test_a_local_scope_compares_units_with_those_of_their_group():
    gating, importance = started(HardConcrete(), "neuron", scope="local")
    for score, wanted in zip(gating.scores, per_weight(importance), strict=True):
        assert torch.equal(score.argsort(), wanted.argsort())
        assert (score.max() - score.min()).item() == pytest.approx(2.0, abs=1e-5)


def test_equal_units_have_equal_places_however_many_they_are():
    values = torch.cat([torch.zeros(3 * KNOTS), torch.linspace(1, 2, 2 * KNOTS), torch.full((KNOTS,), 5.0)])
    shuffled = values[torch.randperm(values.numel(), generator=torch.Generator().manual_seed(0))]
    (places,) = _places([shuffled], "global")
    assert places[shuffled == 0].unique().tolist() == pytest.approx([0.25], abs=1e-3)
    assert places[shuffled == 5].unique().tolist() == pytest.approx([11 / 12], abs=1e-3)
    between = (shuffled > 0) & (shuffled < 5)
    ranks = torch.searchsorted(values, shuffled[between]) / (values.numel() - 1)
    assert torch.allclose(places[between].sort().values[50:-50], ranks.sort().values[50:-50], atol=2e-3)


def test_importance_that_is_nowhere_changes_nothing():
    model = tiny("bert", num_labels=2)
    units = Units.of(model, "head")
    nothing = Scores(units, {group.name: torch.zeros(group.shape) for group in units.groups})
    plain, ordered = (
        Gating(units, model, HardConcrete(), L0(), seed=1, importance=one) for one in (None, nothing)
    )
    for score, other in zip(plain.scores, ordered.scores, strict=True):
        assert torch.allclose(score, other, atol=1e-5)
