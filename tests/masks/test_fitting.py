"""The choice of layers, heads and neurons within a cost, against trying everything."""

from itertools import product

import numpy as np
import pytest
import torch

from tests.tiny import tiny
from tombola.errors import TombolaError
from tombola.masks import Scores, Units
from tombola.masks.fitting import WIDTH, Cost, Kept, OutOfReach, Ranking, fit_uniform, mask_of
from tombola.masks.knapsack import fit_freely


def scores_of(granularity="head+neuron", layers=3, seed=0, shift=0.0):
    model = tiny("bert", num_hidden_layers=layers)
    units = Units.of(model, granularity)
    generator = torch.Generator().manual_seed(seed)
    return Scores(
        units, {group.name: torch.rand(group.shape, generator=generator) + shift for group in units.groups}
    )


def cost_of(budget, constant=1.0, head=1.0, neuron=0.25, layer=0.5):
    whole = Cost(constant, lambda heads, neurons: layer + head * heads + neuron * neurons)
    return whole.scaled(1 / budget)


def worth(ranking, chosen):
    return sum(
        layer.importance(kept) for layer, kept in zip(ranking.layers, chosen, strict=True) if kept is not None
    )


@pytest.mark.parametrize("budget", [9.0, 14.0, 20.0, 27.0])
def test_uniform_is_the_best_of_all(budget):
    ranking = Ranking(scores_of(), heads=(4,), min_heads=1)
    cost = cost_of(budget)
    chosen = fit_uniform(ranking, [cost])
    assert cost.of(chosen) <= 1
    assert len({kept for kept in chosen if kept}) == 1
    options = [
        [Kept(4, neurons) if stays else None for stays in left]
        for neurons in (8, 16, 24)
        for left in product((False, True), repeat=3)
        if any(left)
    ]
    fitting = [one for one in options if cost.of(one) <= 1]
    tight = [one for one in fitting if cost.of(one) >= 0.96]
    assert worth(ranking, chosen) == pytest.approx(max(worth(ranking, one) for one in tight or fitting))


def test_fixed_layers_stay():
    scores = scores_of()
    values = {name: value * (0.01 if ".0." in name else 1) for name, value in scores.items()}
    ranking = Ranking(Scores(scores.units, values), heads=(4,))
    assert fit_uniform(ranking, [cost_of(9.0)])[0] is None
    assert fit_uniform(ranking, [cost_of(9.0)], fixed=[0])[0] is not None


def test_as_many_layers_stay_as_are_wide_enough():
    ranking = Ranking(scores_of(layers=4), multiple=1, heads=(4,))
    for budget in (19.0, 21.0, 24.0, 30.0):
        cost = cost_of(budget)  # a layer of n neurons costs 4.5 + n / 4, on top of 1
        chosen = [kept for kept in fit_uniform(ranking, [cost], layers="most") if kept]
        widest = {left: min(24, int(((budget - 1) / left - 4.5) * 4)) for left in range(1, 5)}
        most = max(left for left, width in widest.items() if width >= WIDTH * 24)
        assert chosen == [Kept(4, widest[most])] * most
        by_importance = [kept for kept in fit_uniform(ranking, [cost]) if kept]
        assert len(by_importance) <= most
    assert fit_uniform(ranking, [cost_of(19.0)], layers="most") != fit_uniform(ranking, [cost_of(19.0)])


def test_the_number_of_layers_can_be_given():
    ranking = Ranking(scores_of(layers=4), multiple=1, heads=(4,))
    for left in (1, 2, 3):
        chosen = fit_uniform(ranking, [cost_of(19.0)], layers=left)
        assert len([kept for kept in chosen if kept]) == left
    with pytest.raises(TombolaError, match="can keep 1 to 4 layers, not 5"):
        fit_uniform(ranking, [cost_of(19.0)], layers=5)
    with pytest.raises(TombolaError, match="smallest model"):
        fit_uniform(ranking, [cost_of(12.0)], layers=4)
    with pytest.raises(TombolaError, match="keeps all its layers, not 2"):
        fit_uniform(Ranking(scores_of("neuron")), [cost_of(19.0)], layers=2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_free_is_the_best_of_all(seed, share):
    ranking = Ranking(scores_of(layers=2, seed=seed))
    cost = cost_of(share * 21.0 + 2.0, constant=2.0)
    chosen = fit_freely(ranking, [cost])
    assert cost.of(chosen) <= 1
    best = max(
        worth(ranking, both)
        for both in product(*(layer.options for layer in ranking.layers))
        if cost.of(both) <= 1
    )
    assert worth(ranking, chosen) >= 0.999 * best


def test_every_cost_stays_within_its_budget():
    ranking = Ranking(scores_of())
    costs = [cost_of(16.0), cost_of(13.0, head=0.2, neuron=0.3)]
    for chosen in (fit_freely(ranking, costs), fit_uniform(ranking, costs)):
        assert all(cost.of(chosen) <= 1 for cost in costs)
        assert max(cost.of(chosen) for cost in costs) > 0.85


def test_several_costs_are_met_even_if_emptied_layers_cost_nothing():
    ranking = Ranking(scores_of())
    costs = [cost_of(16.0, layer=0.0), cost_of(13.0, head=0.2, neuron=0.3, layer=0.0)]
    chosen = fit_freely(ranking, costs)
    assert 0.9 < max(cost.of(chosen) for cost in costs) <= 1


def test_a_minimum_beyond_the_size_of_the_layers_keeps_them_whole():
    heads, neurons = Ranking(scores_of(), min_heads=5), Ranking(scores_of(), min_neurons=32)
    for fit in (fit_freely, fit_uniform):
        assert {kept.heads for kept in fit(heads, [cost_of(16.0)]) if kept} == {4}
        assert {kept.neurons for kept in fit(neurons, [cost_of(21.0)]) if kept} == {24}
    with pytest.raises(TombolaError, match=r"smallest model costs 1\.47 times"):
        fit_freely(neurons, [cost_of(14.0)])


def test_layers_that_meet_the_budget_exactly_stay():
    # Regression: 1 of 5 layers is all that a sparsity of 0.8 leaves, but 0.2 / (1 - 0.8) is a little more than 1.
    ranking = Ranking(scores_of("layer", layers=5))
    cost = Cost(0.0, lambda heads, neurons: (heads * 256 + neurons * 32) / (5 * 1792)).scaled(1 / (1 - 0.8))
    assert cost.of([Kept(4, 24)]) > 1
    for layers in (1, "importance", "most"):
        assert fit_uniform(ranking, [cost], layers=layers).count(Kept(4, 24)) == 1


def test_the_smallest_layers_are_found_in_a_budget_that_is_hardly_larger():
    ranking = Ranking(scores_of(layers=3), min_heads=1, multiple=12)
    budget = 1.0 + 3 * 1.5  # of one head per layer
    for costs in ([cost_of(budget)], [cost_of(budget), cost_of(budget + 0.1)]):
        assert fit_freely(ranking, costs) == [Kept(1, 0)] * 3


def test_negative_scores_use_the_budget_too():
    ranking = Ranking(scores_of(shift=-5.0))
    assert cost_of(14.0).of(fit_freely(ranking, [cost_of(14.0)])) > 0.9


def test_a_budget_that_nothing_meets_is_refused():
    for fit in (fit_freely, fit_uniform):
        with pytest.raises(TombolaError, match="smallest model"):
            fit(Ranking(scores_of(), min_heads=1), [cost_of(1.5)])


def test_nan_is_refused():
    scores = scores_of()
    values = {name: value.clone() for name, value in scores.items()}
    values["layers.1.heads"][2] = torch.nan
    for fit in (fit_freely, fit_uniform):
        with pytest.raises(TombolaError, match=r"some scores of layers\.1\.heads are NaN"):
            fit(Ranking(Scores(scores.units, values)), [cost_of(14.0)])


def test_ffns_and_layers_are_kept_or_not():
    both = Ranking(scores_of("head+ffn"))
    assert {kept.neurons for layer in both.layers for kept in layer.options} == {0, 24}
    assert [layer.options for layer in Ranking(scores_of("layer")).layers] == [[Kept(0, 0), Kept(4, 24)]] * 3
    chosen = fit_uniform(Ranking(scores_of("layer")), [cost_of(23.0)])
    assert sorted(kept is None for kept in chosen) == [False, False, True]


def test_the_mask_keeps_the_highest():
    scores = scores_of()
    mask = mask_of(scores, [Kept(2, 8), None, Kept(4, 24)])
    assert [int(mask[f"layers.{layer}.heads"].sum()) for layer in range(3)] == [2, 0, 4]
    assert [int(mask[f"layers.{layer}.neurons"].sum()) for layer in range(3)] == [8, 0, 24]
    first = scores["layers.0.neurons"].numpy()
    assert set(np.argsort(-first)[:8]) == set(mask["layers.0.neurons"].nonzero().flatten().tolist())


def test_a_target_that_is_just_missed_is_not_said_to_be_met():
    assert "costs 1.01 times the target" in str(OutOfReach(1.0001))
