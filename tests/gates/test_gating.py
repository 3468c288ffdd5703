"""The scores' gradients against plain autograd, and the exact count of what is shut."""

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call

from tests.tiny import tiny, token_ids
from tombola.gates import L0, Bernoulli, Exact, Gating, HardConcrete, Lagrangian, Sign, Threshold
from tombola.masks import Scores, Units, draw
from tombola.masks.layout import parameters_of, state_name

LABELS = torch.tensor([0, 1, 1])
FREE = L0(weight=0.0)


def gating_of(model, granularity="weight", gate=None, budget=FREE, **options):
    gating = Gating(Units.of(model, granularity), model, gate or HardConcrete(), budget, seed=3, **options)
    with torch.no_grad():
        for index, score in enumerate(gating.scores):
            if isinstance(gating.gate, HardConcrete | Bernoulli):
                score.normal_(1.0, 1.0, generator=torch.Generator().manual_seed(index))
    return gating


def loss_of(model):
    return F.cross_entropy(model(token_ids()).logits, LABELS)


CASES = [
    *[
        ("bert", granularity)
        for granularity in ("weight", "head", "neuron", "ffn", "head+ffn", "row", "layer")
    ],
    ("gpt2", "weight"),
    ("gpt2", "head"),
    ("gpt2", "neuron"),
    ("modernbert", "head"),
    ("modernbert", "neuron"),
    ("llama", "head"),
    ("distilbert", "column"),
]


@pytest.mark.parametrize(("model_type", "granularity"), CASES)
def test_gradients_of_scores_are_those_of_autograd_through_the_gates(model_type, granularity):
    model, reference = tiny(model_type, num_labels=2), tiny(model_type, num_labels=2)
    gating = gating_of(model, granularity)
    gating.hold(model)
    gating.sample(step=5)
    factors = dict(zip((group.name for group in gating.units.groups), gating._factors, strict=True))
    loss = loss_of(model)
    loss.backward()
    gating.collect(share=0.0)

    leaves = {name: value.clone().requires_grad_() for name, value in factors.items()}
    prefix = f"{reference.base_model_prefix}."
    own = dict(reference.base_model.named_parameters())
    gated = {prefix + name: own[name].detach() * spread for name, spread in gating.units.spread(leaves)}
    plain = F.cross_entropy(functional_call(reference, gated, (token_ids(),)).logits, LABELS)
    plain.backward()

    assert loss.item() == pytest.approx(plain.item(), abs=1e-6)
    largest = max(leaf.grad.abs().max() for leaf in leaves.values())
    for group, score, sampled in zip(gating.units.groups, gating.scores, gating._factors, strict=True):
        inside = (sampled > 0) & (sampled < 1)
        slope = (sampled + 0.1) * (1.1 - sampled) / 0.8 * inside
        wanted = leaves[group.name].grad * slope
        assert torch.allclose(score.grad, wanted, atol=1e-5 * largest, rtol=1e-4)
    assert any(score.grad.abs().max() > 0 for score in gating.scores)


def test_only_gated_tensors_take_gradients_and_the_head_is_frozen():
    """[bug] The release computes the gradients of all frozen weights."""
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "neuron")
    gating.hold(model)
    training = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert training == {
        f"bert.encoder.layer.{layer}.{name}"
        for layer in (0, 1)
        for name in ("intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight")
    }
    gating.sample(0)
    loss_of(model).backward()
    assert model.classifier.weight.grad is None
    assert model.bert.embeddings.word_embeddings.weight.grad is None


def test_release_gives_the_model_back_bit_for_bit():
    model, before = tiny("bert", num_labels=2), tiny("bert", num_labels=2).state_dict()
    model.classifier.bias.requires_grad_(False)
    gating = gating_of(model, "head+ffn")
    gating.hold(model)
    gating.sample(0)
    loss_of(model).backward()
    assert any(not torch.equal(value, before[name]) for name, value in model.state_dict().items())
    gating.release()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {"classifier.bias"}
    assert all(parameter.grad is None for parameter in model.parameters())


def test_no_64_bit_floats_go_to_the_models_device():
    """Apple's GPUs have none; the meta device stands for one here."""
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "head+ffn")
    gating.hold(model.to("meta"))
    moved = [state for state in gating.state_dict().values() if state.is_meta]
    assert len(moved) == len(gating.scores) + 1
    assert all(state.dtype == torch.float32 for state in moved)


def test_noise_depends_on_seed_and_step_alone():
    samples = []
    for seed, step in ((3, 1), (3, 1), (3, 2), (4, 1)):
        model = tiny("bert", num_labels=2)
        gating = Gating(Units.of(model, "weight"), model, HardConcrete(), FREE, seed=seed)
        gating.hold(model)
        torch.rand(seed + step)
        gating.sample(step)
        samples.append(torch.cat([sampled.flatten() for sampled in gating._factors]))
    assert torch.equal(samples[0], samples[1])
    assert not torch.equal(samples[0], samples[2])
    assert not torch.equal(samples[0], samples[3])


def test_the_l0_term_is_a_mean_over_units_and_not_over_matrices():
    # Regression: the released code averages the means of matrices, so that a small matrix weighs more.
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, budget=L0(weight=2.0, begin=0, full=0))
    sizes = {score.numel() for score in gating.scores}
    assert len(sizes) > 1
    flat = torch.cat([score.detach().flatten() for score in gating.scores]).requires_grad_()
    term = torch.sigmoid(flat - (2 / 3) * torch.log(torch.tensor(0.1 / 1.1))).mean()
    assert gating.openness() == pytest.approx(term.item(), abs=1e-6)
    (2.0 * term).backward()
    gating.hold(model)
    gating.sample(0)
    gating.collect(share=0.5)  # no pass was made: the term alone
    ours = torch.cat([score.grad.flatten() for score in gating.scores])
    assert torch.allclose(ours, flat.grad, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("granularity", ["head", "weight"])
@pytest.mark.parametrize("scale", [1.0, 64.0])
def test_a_relative_l0_term_is_a_share_of_the_losss_derivatives_however_many_units_there_are(
    granularity, scale
):
    model = tiny("bert")
    plain, priced = (
        gating_of(model, granularity, budget=budget) for budget in (FREE, L0(relative=0.5, begin=0, full=0))
    )
    found = []
    for gating in (plain, priced):
        gating.hold(model)
        gating.sample(0)
        (scale * loss_of(model)).backward()
        gating.collect(1.0, scale)
        found.append(torch.cat([score.grad.flatten() for score in gating.scores]) / scale)
        gating.release()
        model.zero_grad()
    loss, both = found
    slopes = torch.cat([priced.gate.openness_slope(score.detach()).flatten() for score in priced.scores])
    torch.testing.assert_close(both - loss, 0.5 * loss.square().mean().sqrt() * slopes, rtol=1e-3, atol=1e-9)


def test_l0_at_the_start_has_the_published_value():
    model = tiny("bert", num_labels=2)
    assert Gating(Units.of(model, "head"), model, HardConcrete(), FREE, seed=0).openness() == pytest.approx(
        0.96114, abs=1e-5
    )


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize(
    "gate", [Threshold(), Threshold(initial="soft"), Threshold(initial="random"), Sign()]
)
def test_the_first_gates_hold_the_first_sparsity(gate, scope):
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, gate=gate, budget=Exact(), sparsity=0.3, scope=scope)
    counts = {
        "global": gating.units.count * 3 / 10,
        "local": sum(int(group.count * 0.3 + 0.5) for group in gating.units.groups),
    }
    assert gating.mask().removed == pytest.approx(counts[scope], abs=0.5)
    if gate.kind == "threshold" and gate.initial == "hard":
        assert gating.cuts.tolist() == pytest.approx([0.01] * len(gating.cuts))


@pytest.mark.parametrize("scope", ["local", "global"])
@pytest.mark.parametrize("granularity", ["weight", "head", "head+ffn"])
@pytest.mark.parametrize("sparsity", [0.0, 0.37, 0.7])
def test_a_reset_is_exact_even_where_all_scores_tie_and_agrees_with_the_draw(scope, granularity, sparsity):
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, granularity, Threshold(), Exact(), sparsity=0.5, scope=scope)
    for spread in (0.0, 1e-6, 0.02):
        with torch.no_grad():
            for score in gating.scores:
                score += spread * torch.randn(score.shape).clamp(-1, 1)  # clamped: many ties
        wanted = gating.draw(sparsity)
        gating.reset(sparsity)
        assert gating.mask() == wanted == draw(gating.learned(), sparsity=sparsity, scope=scope)


def test_settling_follows_the_schedule_and_ends_at_the_target():
    # Regression: the released code saves the mask of the first sparsity as the final one.
    model = tiny("bert", num_labels=2)
    budget = Exact(schedule="cubic", initial=0.2, reset_every=4)
    gating = gating_of(model, gate=Threshold(), budget=budget, sparsity=0.8, scope="global")
    seen = {}
    for step in range(1, 11):
        with torch.no_grad():
            for score in gating.scores:
                score += 0.01 * torch.randn(score.shape)
        gating.settle(step, steps=10)
        seen[step] = gating.mask().sparsity
    count = gating.units.count
    for step in (4, 8, 10):
        assert seen[step] * count == pytest.approx(round(budget.count_at(step / 10, 0.8) * count), abs=1)
    assert seen[10] * count == pytest.approx(round(0.8 * count), abs=0.5)
    assert gating.mask() == gating.draw(0.8)


def test_budgets_without_a_count_leave_the_cut_alone():
    model = tiny("bert", num_labels=2)
    gating = gating_of(model)
    gating.settle(10, steps=10)
    assert set(gating.cuts.tolist()) == {0.0}


@pytest.mark.parametrize("gate", [HardConcrete(), Bernoulli(), Threshold(), Sign()])
@pytest.mark.parametrize("budget", [L0(begin=0, full=0), Exact(), Lagrangian()])
def test_every_gate_goes_with_every_budget(gate, budget):
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, "head", gate, budget, sparsity=0.5)
    gating.hold(model)
    gating.reset(0.5)
    gating.sample(0)
    loss_of(model).backward()
    gating.collect(0.5)
    gradients = torch.cat([score.grad for score in gating.scores])
    assert gradients.isfinite().all()
    assert gradients.abs().max() > 0
    assert gating.mask().removed == 4


def test_a_lagrangian_search_gives_the_sparsity_that_was_asked_for():
    model, steps, rate = tiny("distilbert", num_labels=2), 150, 0.1
    gating = gating_of(model, "head+neuron", HardConcrete(), Lagrangian(), sparsity=0.4)
    gating.hold(model)
    optimizer = torch.optim.AdamW(gating.parameters(), lr=rate, weight_decay=1e-6)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = rate * min(step / 15, (steps - step) / (steps - 15))
        gating.sample(step)
        loss_of(model).backward()
        gating.collect(step / steps)
        optimizer.step()
        model.zero_grad()
    assert 1 - gating.openness() == pytest.approx(0.4, abs=0.03)
    assert gating.draw(0.4).removed == round(0.4 * gating.units.count)


def test_gates_on_biases_and_on_the_head_get_the_gradients_of_autograd():
    """What SRNets calls `mask_classifier` and `mask_biases`."""
    model, reference = tiny("roberta", num_labels=2), tiny("roberta", num_labels=2)
    units = Units.of(model, "weight", classifier=True, biases=True, layers=[1])
    gating = Gating(units, model, HardConcrete(), FREE, seed=3)
    gating.hold(model)
    gating.sample(step=5)
    factors = dict(zip((group.name for group in units.groups), gating._factors, strict=True))
    loss_of(model).backward()
    gating.collect(share=0.0)
    leaves = {name: value.clone().requires_grad_() for name, value in factors.items()}
    own = parameters_of(reference)
    gated = {
        state_name(reference, name): own[name].detach() * spread for name, spread in units.spread(leaves)
    }
    assert {"classifier.out_proj.weight", "classifier.dense.bias"} <= gated.keys()
    assert not any(".layer.0." in name for name in gated)
    F.cross_entropy(functional_call(reference, gated, (token_ids(),)).logits, LABELS).backward()
    slope = gating.gate
    for group, score, margin in zip(units.groups, gating.scores, gating._margins(), strict=True):
        expected = slope.back(leaves[group.name].grad, factors[group.name], margin)
        torch.testing.assert_close(score.grad, expected, rtol=1e-4, atol=1e-7)
    gating.release()
    assert torch.equal(model.classifier.out_proj.weight, reference.classifier.out_proj.weight)


@pytest.mark.parametrize("gate", [Threshold(), Bernoulli(), Sign()], ids=["threshold", "bernoulli", "sign"])
def test_a_straight_score_takes_the_gradient_of_its_gated_weight_times_the_weight(gate):
    """SRNets: dL/dscore = dL/dW_eff ⊙ W, with nothing of the gate's own slope in it."""
    model, reference = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    gating = gating_of(model, gate=gate)
    gating.hold(model)
    gating.sample(0)
    gated = {name: value.detach().clone() for name, value in model.base_model.named_parameters()}
    loss_of(model).backward()
    gating.collect(share=0.0)

    own = {name: value.detach().clone() for name, value in reference.base_model.named_parameters()}
    reference.base_model.load_state_dict(gated, strict=False)
    loss_of(reference).backward()
    effective = dict(reference.base_model.named_parameters())
    for group, score in zip(gating.units.groups, gating.scores, strict=True):
        name = group.parts[0].tensor
        assert torch.allclose(score.grad, effective[name].grad * own[name], atol=1e-6)
    assert any(score.grad.abs().max() > 1e-4 for score in gating.scores)


def test_scores_of_sign_gates_are_clamped_after_each_step():
    model = tiny("bert", num_labels=2)
    gating = gating_of(model, gate=Sign())
    with torch.no_grad():
        for score in gating.scores:
            score.mul_(300)  # the first scores are ±0.01
    gating.settle(step=1, steps=10)
    assert {score.abs().max().item() for score in gating.scores} == {1.0}
    threshold = gating_of(model, gate=Threshold())
    with torch.no_grad():
        for score in threshold.scores:
            score.add_(300)
    threshold.settle(step=1, steps=10)
    assert threshold.scores[0].min() >= 300


@pytest.mark.parametrize("scope", ["local", "global", "row"])
@pytest.mark.parametrize("gate", [HardConcrete(), Bernoulli(), Threshold(), Sign()])
def test_a_reset_that_shuts_nothing_keeps_the_scores_and_a_cut_close_below_them(gate, scope):
    """At first a stepwise schedule removes nothing; gates must still learn then, and keep what they learned."""
    model = tiny("bert", num_labels=2)
    budget = Exact(schedule="stepwise", reset_every=1)
    gating = gating_of(model, gate=gate, budget=budget, sparsity=0.5, scope=scope)
    before = [score.detach().clone() for score in gating.scores]
    for step in (1, 2):
        gating.settle(step, steps=100)
    assert gating.mask().removed == 0
    for score, own, cut in zip(gating.scores, before, gating.cuts.tolist(), strict=True):
        assert torch.equal(score, own)
        assert own.min().item() - 2 < cut < own.min().item()


def test_the_budgets_gradient_is_scaled_like_the_models():
    """16-bit gradients are scaled before the pass; a budget that were not would vanish beside them."""
    found = []
    for scale in (1.0, 1024.0):
        model = tiny("bert", num_labels=2)
        gating = gating_of(model, budget=L0(weight=2.0, begin=0, full=0))
        gating.hold(model)
        gating.sample(0)
        (scale * loss_of(model)).backward()
        gating.collect(1.0, scale)
        found.append(torch.cat([score.grad.flatten() for score in gating.scores]))
    assert torch.allclose(found[0] * 1024, found[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scope_and_pattern", [("row", None), ("global", "2:4"), ("local", "4x4")])
@pytest.mark.parametrize("initial", ["hard", "soft", "random"])
@pytest.mark.parametrize("model_type", ["bert", "gpt2"])
def test_rows_and_patterns_hold_from_the_start_and_after_every_reset(model_type, initial, scope_and_pattern):
    scope, pattern = scope_and_pattern
    model = tiny(model_type)
    gating = Gating(
        Units.of(model, "weight"),
        model,
        Threshold(initial=initial),
        Exact(),
        seed=3,
        sparsity=0.5,
        scope=scope,
        pattern=pattern,
    )
    if initial != "random":
        magnitudes = Scores.magnitude(gating.units, model)
        assert gating.mask() == draw(magnitudes, 0.5, scope=scope, pattern=pattern)
    with torch.no_grad():
        for index, score in enumerate(gating.scores):
            score.add_(torch.randn(score.shape, generator=torch.Generator().manual_seed(index)))
    before = draw(gating.learned(), 0.5, scope=scope, pattern=pattern)
    assert gating.mask() != before
    gating.settle(4, 4)
    assert gating.mask() == before
    assert draw(gating.learned(), 0.5, scope=scope, pattern=pattern) == before


def test_on_the_way_to_a_pattern_every_row_loses_the_same_share():
    model = tiny("llama")
    budget = Exact(schedule="cubic", initial=0.0)
    gating = Gating(
        Units.of(model, "weight"),
        model,
        Threshold(initial="soft"),
        budget,
        seed=3,
        sparsity=0.5,
        pattern="2:4",
    )
    assert gating.mask().removed == 0
    gating.reset(0.25)
    for group in gating.units.groups:
        kept = gating.mask()[group.name]
        assert (kept.sum(dim=1) == group.shape[1] * 3 // 4).all()
    whole = draw(gating.learned(), pattern="2:4")
    gating.settle(4, 4)
    assert gating.mask() == whole
