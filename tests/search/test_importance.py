"""Structured importance against explicit gates, and the choice of tickets against the published counts."""

from itertools import pairwise

import pytest
import torch
from torch.nn.functional import cross_entropy, mse_loss
from transformers import BertConfig, BertModel

from tests.tiny import MODEL_TYPES, tiny, token_ids
from tests.training.toy import same_weights, toy_train
from tombola.errors import RecipeError
from tombola.masks import Mask, Scores, Units
from tombola.masks.shares import whole_units
from tombola.recipe.grid import expand
from tombola.search import Evidence, lowest, searches
from tombola.search.importance import Importance, choose, importance, normalised
from tombola.search.random import Random, random

LENGTHS = torch.tensor([7, 4, 6, 2])


def batch_of(seed=0, pad=0):
    real = (torch.arange(7) < LENGTHS[:, None]).long()
    ids = token_ids(4, 7, seed) * real + pad * (1 - real)
    return {"input_ids": ids, "attention_mask": real, "labels": torch.tensor([0, 1, 1, 0])}


def evidence_of(*batches, seed=5):
    return Evidence(seed, lambda count: iter(batches[:count]))


def layers_of(model):
    names = {"bert": "encoder.layer", "llama": "layers"}
    return model.base_model.get_submodule(names[model.config.model_type])


def parts_of(model, layer):
    if model.config.model_type == "llama":
        return layer.self_attn.o_proj, layer.mlp.down_proj
    return layer.attention.output.dense, layer.output.dense


def naive(model, batch, groups):
    """Importance by the definition: a gate of ones for every token and unit, and its gradient."""
    gates, hooks = {}, []

    def multiply(name, values, count):
        gates[name] = torch.ones(*values.shape[:2], count, requires_grad=True)
        return values * gates[name].repeat_interleave(values.shape[-1] // count, dim=-1)

    for index, layer in enumerate(layers_of(model)):
        attention, ffn = parts_of(model, layer)
        for name, module, count, output in (
            (f"layers.{index}.heads", attention, groups["head"], False),
            (f"layers.{index}.neurons", ffn, groups["neuron"], False),
            (f"layers.{index}.ffn", ffn, 1, True),
        ):
            if output:
                hook = module.register_forward_hook(lambda m, i, o, n=name, c=count: multiply(n, o, c))
            else:
                hook = module.register_forward_pre_hook(lambda m, i, n=name, c=count: (multiply(n, i[0], c),))
            hooks.append(hook)
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    labels = batch["labels"]
    loss = (
        mse_loss(logits.squeeze(-1), labels) if labels.is_floating_point() else cross_entropy(logits, labels)
    )
    loss.backward()
    for hook in hooks:
        hook.remove()
    real = batch["attention_mask"].bool()
    return {name: gate.grad[real].abs().sum(0) for name, gate in gates.items()}


def unnormalised(monkeypatch):
    monkeypatch.setattr(
        "tombola.search.importance.normalised",
        lambda units, values: Scores(units, {name: value.float() for name, value in values.items()}),
    )


@pytest.mark.parametrize("units", ["head", "ffn", "neuron", "head+ffn", "head+neuron"])
@pytest.mark.parametrize("model_type", ["bert", "llama"])
def test_importance_is_the_gradient_of_explicit_gates(model_type, units, monkeypatch):
    unnormalised(monkeypatch)
    model, batch = tiny(model_type), batch_of()
    expected = naive(tiny(model_type), batch, {"head": 2 if model_type == "llama" else 4, "neuron": 24})
    scores = importance(Importance(units=units), model, Units.of(model, units), evidence_of(batch))
    assert len(scores) == 2 * len(units.split("+"))
    for name, values in scores.items():
        torch.testing.assert_close(values, expected[name], rtol=1e-4, atol=1e-6)


def test_importance_of_shared_layers_is_the_gradient_of_a_gate_in_all_passes(monkeypatch):
    """ALBERT passes one layer several times: a head that goes is gone from all of them."""
    unnormalised(monkeypatch)
    model, batch = tiny("albert", inner_group_num=1, num_hidden_layers=3), batch_of()
    scores = importance(Importance(units="head"), model, Units.of(model, "head"), evidence_of(batch, batch))
    gate = torch.ones(4, 7, 4, requires_grad=True)
    outward = model.base_model.encoder.albert_layer_groups[0].albert_layers[0].attention.dense
    outward.register_forward_pre_hook(lambda module, given: (given[0] * gate.repeat_interleave(4, dim=-1),))
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    cross_entropy(logits, batch["labels"]).backward()
    expected = gate.grad[batch["attention_mask"].bool()].abs().sum(0)
    torch.testing.assert_close(scores["layers.0.heads"], expected, rtol=1e-4, atol=1e-6)


def test_the_absolute_value_is_taken_for_every_token(monkeypatch):
    unnormalised(monkeypatch)
    model, whole = tiny("bert"), batch_of()
    whole["labels"] = torch.tensor([0, 0, 0, 0])
    rows = [{name: value[i : i + 1] for name, value in whole.items()} for i in range(4)]
    units = Units.of(model, "head")
    together = importance(Importance(units="head"), model, units, evidence_of(whole))
    alone = importance(Importance(units="head"), model, units, evidence_of(*rows))
    for (
        name
    ) in together:  # the mean loss gives each of four examples a quarter, as the mean over batches does
        torch.testing.assert_close(together[name], alone[name], rtol=1e-4, atol=1e-6)


def test_regression_has_importance_too(monkeypatch):
    unnormalised(monkeypatch)
    batch = batch_of() | {"labels": torch.tensor([0.5, 3.0, 2.0, 5.0])}
    model = tiny("bert", num_labels=1)
    expected = naive(tiny("bert", num_labels=1), batch, {"head": 4, "neuron": 24})
    scores = importance(Importance(), model, Units.of(model, "head+ffn"), evidence_of(batch))
    for name, values in scores.items():
        torch.testing.assert_close(values, expected[name], rtol=1e-4, atol=1e-6)


def test_batches_are_averaged_and_gradients_never_accumulate(monkeypatch):
    """The released code never clears gradients, so that the first of T batches counts T times."""
    unnormalised(monkeypatch)
    model, batches = tiny("bert"), [batch_of(seed) for seed in range(3)]
    units, settings = Units.of(model, "head+ffn"), Importance()
    single = [importance(settings, model, units, evidence_of(batch)) for batch in batches]
    mean = importance(settings, model, units, evidence_of(*batches))
    for name in mean:
        torch.testing.assert_close(mean[name], torch.stack([one[name] for one in single]).mean(0))
    first_two = importance(Importance(batches=2), model, units, evidence_of(*batches))
    assert not torch.equal(first_two["layers.0.heads"], mean["layers.0.heads"])


def test_padding_counts_for_nothing(monkeypatch):
    """The released code sums over padding too. Wider padding, and other tokens in it, must change nothing."""
    unnormalised(monkeypatch)
    model = tiny("bert")
    units = Units.of(model, "head+ffn")
    tight = batch_of()
    wide = {
        "input_ids": torch.nn.functional.pad(batch_of(pad=9)["input_ids"], (0, 5), value=3),
        "attention_mask": torch.nn.functional.pad(tight["attention_mask"], (0, 5)),
        "labels": tight["labels"],
    }
    one = importance(Importance(), model, units, evidence_of(tight))
    other = importance(Importance(), model, units, evidence_of(wide))
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_scores_every_unit_and_gets_its_model_back(model_type):
    model, before = tiny(model_type), tiny(model_type)
    units = Units.of(model, "head+neuron")
    scores = importance(Importance(units="head+neuron"), model, units, evidence_of(batch_of()))
    assert all((values > 0).any() and torch.isfinite(values).all() for values in scores.values())
    assert (scores["layers.1.heads"] > 0).all()
    assert same_weights(model, before)
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())


def test_heads_are_normalised_in_their_layer_and_ffns_over_all_layers():
    units = Units.of(tiny("bert"), "head+ffn")
    values = {
        "layers.0.heads": torch.tensor([3.0, 4.0, 0.0, 0.0]),
        "layers.1.heads": torch.zeros(4),
        "layers.0.ffn": torch.tensor([6.0]),
        "layers.1.ffn": torch.tensor([8.0]),
    }
    scores = normalised(units, values)
    assert scores["layers.0.heads"].tolist() == pytest.approx([0.6, 0.8, 0.0, 0.0])
    assert scores["layers.1.heads"].tolist() == [0.0] * 4
    assert scores["layers.0.ffn"].item() == pytest.approx(0.6)
    assert scores["layers.1.ffn"].item() == pytest.approx(0.8)


@pytest.fixture(scope="module")
def base():
    """BERT-base without its weights' memory."""
    with torch.device("meta"):
        return BertModel(BertConfig())


def random_scores(units, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Scores(units, {group.name: torch.rand(group.shape, generator=generator) for group in units.groups})


def removed(mask, kind):
    return sum(int((~mask[group.name]).sum()) for group in mask.units.groups if group.kind == kind)


@pytest.mark.parametrize("order", ["winning", "losing", "random"])
def test_the_published_ladder_of_heads(base, order):
    scores = random_scores(Units.of(base, "head"))
    masks = [
        choose(Importance(units="head", order=order), scores, step / 20, "global", None)
        for step in range(1, 20)
    ]
    assert [mask.removed for mask in masks] == [
        7, 14, 21, 28, 36, 43, 50, 57, 64, 72, 79, 86, 93, 100, 108, 115, 122, 129, 132,
    ]  # fmt: skip
    assert all(larger.contains(smaller) for larger, smaller in pairwise(masks))
    assert all(int(heads.sum()) == 1 for heads in masks[-1].values())


def test_the_published_joint_sweep_and_its_remaining_weights(base):
    units = Units.of(base, "head+ffn")
    masks = [choose(Importance(), random_scores(units), step / 10, "global", None) for step in range(1, 9)]
    assert [(removed(mask, "head"), removed(mask, "ffn")) for mask in masks] == [
        (14, 1), (28, 2), (43, 3), (57, 4), (72, 5), (86, 6), (100, 7), (115, 8),
    ]  # fmt: skip
    remaining = [round(100 * (1 - mask.parameter_sparsity), 1) for mask in masks]
    assert remaining == [93.2, 86.4, 79.3, 72.5, 65.5, 58.7, 51.9, 44.9]
    assert all(larger.contains(smaller) for larger, smaller in pairwise(masks))
    assert masks[0].units.same_as(units)


def test_neurons_go_jointly_with_heads_at_the_same_ratio(base):
    mask = choose(
        Importance(units="head+neuron"), random_scores(Units.of(base, "head+neuron")), 0.3, "global", None
    )
    assert (removed(mask, "head"), removed(mask, "neuron")) == (43, 12 * 3072 // 4)


@pytest.mark.parametrize(("share", "count", "expected"), [(0.29, 100, 29), (0.7, 10, 7), (0.3, 144, 43)])
def test_a_typed_share_is_not_robbed_of_a_unit_by_its_float(share, count, expected):
    assert whole_units(share, count) == expected


@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.75])
def test_losing_is_winning_on_the_opposite_scores(base, sparsity):
    units = Units.of(base, "head+ffn")
    scores = random_scores(units)
    opposite = Scores(units, {name: -values for name, values in scores.items()})
    losing = choose(Importance(order="losing"), scores, sparsity, "global", None)
    assert losing == choose(Importance(), opposite, sparsity, "global", None)
    winning = choose(Importance(), scores, sparsity, "global", None)
    assert winning.removed == losing.removed
    if sparsity == 0.1:
        assert (winning | losing) == Mask.full(units)


@pytest.mark.parametrize("min_heads", [0, 1, 3])
@pytest.mark.parametrize("order", ["winning", "losing"])
def test_the_heads_of_a_layer_that_would_go_last_are_protected(base, order, min_heads):
    units = Units.of(base, "head")
    first_to_go = torch.arange(12) / 1e6 + (1.0 if order == "losing" else -1.0)
    scores = Scores(units, {**random_scores(units), "layers.4.heads": first_to_go})
    settings = Importance(units="head", order=order, min_heads=min_heads)
    mask = choose(settings, scores, 0.4, "global", None)
    last = range(min_heads) if order == "losing" else range(12 - min_heads, 12)
    assert mask["layers.4.heads"].nonzero().flatten().tolist() == list(last)
    assert mask.removed == 57


def test_random_tickets_are_drawn_without_replacement_uniformly_and_by_the_seed_alone(base):
    """The released code draws with replacement, so that its random tickets remove too few units."""
    units, settings = Units.of(base, "head+ffn"), Importance(order="random")

    def never(count):
        raise AssertionError("a random ticket reads no data")

    def ticket(seed, sparsity):
        return choose(
            settings, importance(settings, base, units, Evidence(seed, never)), sparsity, "global", None
        )

    assert (removed(ticket(1, 0.5), "head"), removed(ticket(1, 0.5), "ffn")) == (72, 5)
    assert ticket(1, 0.2).contains(ticket(1, 0.5))
    assert ticket(1, 0.5) == ticket(1, 0.5) != ticket(2, 0.5)
    heads = [group.name for group in units.groups if group.kind == "head"]
    masks = [ticket(seed, 0.5) for seed in range(200)]
    kept = torch.stack([torch.cat([mask[name] for name in heads]).float() for mask in masks])
    deviations = (kept.mean(0) - 0.5).abs() / (0.25 / 200) ** 0.5
    assert deviations.max() < 4.5


def test_removed_units_do_not_change_and_matter_to_nothing_under_weight_decay(tmp_path):
    """The released code lets weight decay shrink removed units."""
    model, other = tiny("bert", num_labels=2), tiny("bert", num_labels=2)
    units = Units.of(model, "head+ffn")
    mask = choose(Importance(), random_scores(units), 0.7, "global", None)
    removed_of = {name: ~kept for name, kept in mask.tensors(model).items()}
    with torch.no_grad():
        for name, gone in removed_of.items():
            other.bert.get_parameter(name)[gone] += 7.0
    for one, folder in ((model, "one"), (other, "other")):
        toy_train(one, tmp_path / folder, mask=mask, optimizer="adamax", weight_decay=0.01)
    assert same_weights(model, other)
    assert removed_of
    assert all((model.bert.get_parameter(name)[gone] == 0).all() for name, gone in removed_of.items())


def test_what_a_recipe_may_say():
    assert searches["importance"].choose is choose
    (cell,) = expand({"model": "m", "task": "rte", "search": {"method": "importance"}})
    assert cell.recipe.search == Importance(units="head+ffn", start="finetuned")
    for units, message in (
        ("weight", r"search\.units"),
        ("head+layer", r"search\.units"),
        ("layer", "super_tickets is not defined for layers"),
    ):
        with pytest.raises(RecipeError, match=message):
            expand({"model": "m", "task": "rte", "search": {"method": "importance", "units": units}})


@pytest.mark.parametrize("order", ["winning", "losing", "random"])
def test_heads_and_ffns_may_go_in_independent_numbers(base, order):
    units = Units.of(base, "head+ffn")
    scores = random_scores(units)
    mask = choose(Importance(order=order), scores, {"head": 100, "ffn": 1}, "global", None)
    assert (removed(mask, "head"), removed(mask, "ffn")) == (100, 1)
    heads_alone = choose(Importance(order=order), scores, {"head": 28}, "global", None)
    assert (removed(heads_alone, "head"), removed(heads_alone, "ffn")) == (28, 0)
    published = choose(Importance(order=order), scores, 0.2, "global", None)
    assert choose(Importance(order=order), scores, {"head": 28, "ffn": 2}, "global", None) == published
    assert all(bool(kept.any()) for name, kept in mask.items() if name.endswith("heads"))


def test_any_scorer_draws_counts_of_each_kind_in_its_own_ranking(base):
    scores = random_scores(Units.of(base, "head+ffn"))
    mask = lowest(None, scores, {"head": 30, "ffn": 3}, "global", None)
    for kind, count in (("head", 30), ("ffn", 3)):
        names = [group.name for group in mask.units.groups if group.kind == kind]
        values, kept = (torch.cat([one[name] for name in names]) for one in (scores, mask))
        assert int((~kept).sum()) == count
        assert values[~kept].max() < values[kept].min()


def test_the_nth_random_mask_is_another_one_of_the_same_size(base):
    units = Units.of(base, "head+ffn")

    def ticket(number, seed=5):
        settings = Importance(order="random", mask_number=number)
        return choose(
            settings, importance(settings, base, units, evidence_of(seed=seed)), 0.5, "global", None
        )

    tickets = [ticket(number) for number in range(5)]
    assert all(ticket(number) == tickets[number] for number in range(5))
    assert all(one != other for i, one in enumerate(tickets) for other in tickets[:i])
    assert {one.removed for one in tickets} == {77}
    assert ticket(1) != ticket(1, seed=6)
    plain = Random(units="head", mask_number=3)
    first, other = (
        random(settings, base, Units.of(base, "head"), evidence_of())
        for settings in (plain, Random(units="head"))
    )
    assert not torch.equal(first["layers.0.heads"], other["layers.0.heads"])


def test_a_random_ticket_may_keep_as_many_heads_in_each_layer_as_the_winning_one():
    """The released `preserve_layer_ratio`, without its drawing with replacement."""
    model = tiny("bert", num_hidden_layers=4)
    units = Units.of(model, "head+ffn")
    settings = Importance(order="random", preserve_layer_ratio=True)
    winning = importance(Importance(), model, units, evidence_of(batch_of()))
    different = 0
    for seed in range(6):
        scores = importance(settings, model, units, evidence_of(batch_of(), seed=seed))
        for share in (0.25, 0.5):
            lucky = choose(settings, scores, share, "global", None)
            won = choose(Importance(), winning, share, "global", None)
            for layer in range(4):
                name = f"layers.{layer}.heads"
                assert int(lucky[name].sum()) == int(won[name].sum())
            assert removed(lucky, "ffn") == removed(won, "ffn")
            different += lucky != won
    assert different > 6


def test_settings_of_random_masks_are_for_random_masks():
    for name, value in (("mask_number", 2), ("preserve_layer_ratio", True)):
        with pytest.raises(RecipeError, match=f"{name}: only works with order: random"):
            expand({"model": "m", "task": "rte", "search": {"method": "importance", name: value}})


def test_random_layers_cannot_keep_the_ratio_of_each_layer():
    """Such a ticket would be the winning one under the name of a random one."""
    search = {"method": "importance", "units": "layer", "criterion": "taylor", "order": "random"}
    expand({"model": "m", "task": "rte", "search": search})
    with pytest.raises(RecipeError, match="preserve_layer_ratio: with units: layer"):
        expand({"model": "m", "task": "rte", "search": {**search, "preserve_layer_ratio": True}})
