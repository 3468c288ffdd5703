"""Scores and pruning by calibration against plain PyTorch formulas and direct solutions."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.masks.small import follows
from tests.search.test_calibration import SINGLE_PASS, padded, seen_by_the_whole_model
from tests.tiny import tiny
from tombola.errors import TombolaError
from tombola.masks import Units, draw
from tombola.masks.in_matrices import MatrixSelection
from tombola.masks.patterns import parse_pattern
from tombola.search import Evidence, searches
from tombola.search.block_influence import BlockInfluence, block_influence
from tombola.search.input_statistics import Watch
from tombola.search.layerwise import places_of, prune_in_order
from tombola.search.ria import Ria, ria
from tombola.search.sparsegpt import SparseGPT, reconstruct
from tombola.search.wanda import Wanda, wanda

pytestmark = pytest.mark.portable

EVIDENCE = Evidence(seed=1, batches=lambda count: iter(()), examples=lambda count, size: padded())


def weights_of(model):
    return Units.of(model, "weight").without("pooler")


def matrices(model):
    """Each matrix as outputs by inputs, with its place."""
    return {
        place.name: (place, place.view(model.base_model.get_parameter(place.tensor).detach()))
        for place in places_of(weights_of(model))
    }


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "llama", "modernbert"])
def test_wanda_is_the_weight_times_the_norm_of_its_input(model_type):
    model = tiny(model_type)
    rows = seen_by_the_whole_model(model, padded())
    scores = wanda(Wanda(), model, weights_of(model), EVIDENCE)
    for name, (place, weight) in matrices(model).items():
        expected = weight.abs() * rows[place.tensor].norm(dim=0).float()
        torch.testing.assert_close(place.stored(scores[name]), expected, rtol=1e-4, atol=1e-5)


class OnApple(torch.Tensor):
    """A tensor on a device without 64-bit floats, as Apple's GPUs are."""

    is_mps = True

    def cpu(self):
        return self.as_subclass(torch.Tensor)

    def double(self):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")


@pytest.mark.parametrize("search", [Wanda(), Ria()])
def test_scores_need_no_64_bit_floats_on_the_models_device(search):
    layer, inputs = torch.nn.Linear(4, 3), torch.randn(5, 4)
    squares = []
    for values in (inputs, inputs.as_subclass(OnApple)):
        walk = SimpleNamespace(current=0, rows=lambda rows: rows)
        with Watch(walk, {"layer": layer}, search.statistic) as watch:
            for walk.current in range(2):
                layer(values)
        squares.append(watch.totals()["layer"])
    assert torch.equal(*(search.score(layer.weight.detach(), each) for each in squares))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("model_type", ["bert", "gpt2", "qwen3"])
def test_ria_is_the_share_of_row_and_column_times_a_power_of_the_norm(model_type, exponent):
    model = tiny(model_type)
    rows = seen_by_the_whole_model(model, padded())
    scores = ria(Ria(exponent=exponent), model, weights_of(model), EVIDENCE)
    for name, (place, weight) in matrices(model).items():
        sizes = weight.abs()
        relative = sizes / sizes.sum(dim=0) + sizes / sizes.sum(dim=1).reshape(-1, 1)
        expected = relative * rows[place.tensor].norm(dim=0).float() ** exponent
        torch.testing.assert_close(place.stored(scores[name]), expected, rtol=1e-4, atol=1e-5)


def test_ria_of_a_row_and_a_column_of_zeros_is_zero():
    weight = torch.randn(4, 6)
    weight[1], weight[:, 2] = 0.0, 0.0
    scores = Ria().score(weight, torch.ones(6))
    assert scores.isfinite().all()
    assert (scores[1] == 0).all()
    assert (scores[:, 2] == 0).all()


@pytest.mark.parametrize("model_type", SINGLE_PASS)
def test_block_influence_is_one_minus_the_cosine_of_input_and_output(model_type):
    model = tiny(model_type)
    units = Units.of(model, "layer")
    scores = block_influence(BlockInfluence(), model, units, EVIDENCE)
    totals, tokens = torch.zeros(2, dtype=torch.float64), 0
    for batch in padded():
        ids, mask = batch["input_ids"], batch["attention_mask"]
        seen = {}

        def hook(module, arguments, options, output, seen=seen):
            before = arguments[0] if arguments else options["hidden_states"]
            seen[len(seen)] = (before, output[0] if isinstance(output, tuple) else output)

        from tombola.families import family_of

        hooks = [
            layer.register_forward_hook(hook, with_kwargs=True) for layer in family_of(model).layers_of(model)
        ]
        with torch.no_grad():
            model(input_ids=ids, attention_mask=mask)
        for one in hooks:
            one.remove()
        for index in seen:
            before, after = (part[mask.bool()].double() for part in seen[index])
            norms = before.norm(dim=-1) * after.norm(dim=-1)
            totals[index] += ((before * after).sum(-1) / norms).sum()
        tokens += int(mask.sum())
    found = torch.tensor([scores[group.name].item() for group in units.groups])
    expected = (1 - totals / tokens)[[group.layer for group in units.groups]]
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)


def test_a_layer_that_does_nothing_has_no_influence_and_goes_first():
    model = tiny("llama", "causal-lm", num_hidden_layers=4)
    with torch.no_grad():
        model.model.layers[2].self_attn.o_proj.weight.zero_()
        model.model.layers[2].mlp.down_proj.weight.zero_()
    scores = block_influence(BlockInfluence(), model, Units.of(model, "layer"), EVIDENCE)
    assert scores["layers.2"].item() == pytest.approx(0, abs=1e-6)
    mask = draw(scores, remove=1)
    assert [bool(mask[f"layers.{index}"]) for index in range(4)] == [True, True, False, True]


# Pruning in order


@pytest.mark.parametrize("model_type", SINGLE_PASS)
@pytest.mark.parametrize("search", [Wanda(), SparseGPT(block=6)], ids=["wanda", "sparsegpt"])
def test_later_layers_are_calibrated_on_the_pruned_earlier_ones(model_type, search):
    """As if the model were run from the start for each layer, and its matrices pruned by what they then read."""
    model, plain = tiny(model_type), tiny(model_type)
    selection = MatrixSelection(0.5, "row")
    mask = prune_in_order(search, model, weights_of(model), EVIDENCE, selection)
    for layer in range(2):
        rows = seen_by_the_whole_model(plain, padded())
        for place, weight in matrices(plain).values():
            if place.layer == layer:
                seen = rows[place.tensor]
                statistic = seen.square().sum(0) if search.statistic == "squares" else (seen.T @ seen).float()
                search.prune(weight, statistic, selection)
    for name, (place, weight) in matrices(plain).items():
        found = place.view(model.base_model.get_parameter(place.tensor).detach())
        torch.testing.assert_close(found, weight, rtol=1e-2, atol=2e-3)
        assert torch.equal(found != 0, place.stored(mask[name]))
        assert (place.stored(mask[name]).sum(dim=1) == weight.shape[1] - (weight.shape[1] + 1) // 2).all()


@pytest.mark.parametrize("pattern", ["2:4", "1:8", "4x4"])
@pytest.mark.parametrize("search", [Wanda(), Ria(), SparseGPT(block=12)], ids=["wanda", "ria", "sparsegpt"])
def test_patterns_are_exact_under_every_method(search, pattern):
    model = tiny("gpt2", "causal-lm")
    chosen = parse_pattern(pattern)
    selection = MatrixSelection(chosen.sparsity or 0.5, "local", chosen)
    mask = prune_in_order(search, model, weights_of(model), EVIDENCE, selection)
    assert mask.sparsity == (chosen.sparsity or 0.5)
    for name, (place, weight) in matrices(model).items():
        kept = place.stored(mask[name])
        assert follows(kept.contiguous(), chosen)
        assert torch.equal(weight != 0, kept)


def test_the_pooler_and_the_head_are_pruned_by_what_reaches_them():
    model = tiny("bert")
    units = Units.of(model, "weight", classifier=True)
    search = Wanda(classifier=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    mask = prune_in_order(search, model, units, EVIDENCE, MatrixSelection(0.5, "row"))
    model.bert.pooler.dense.weight.data.copy_(before["bert.pooler.dense.weight"])
    first = []
    with torch.no_grad():
        for batch in padded():
            found = model.bert(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            first.append(found.last_hidden_state[:, 0])
    weight = before["bert.pooler.dense.weight"]
    scores = weight.abs() * torch.cat(first).norm(dim=0)
    assert torch.equal(mask["pooler.dense"], MatrixSelection(0.5, "row").keep(scores))
    assert mask["head.classifier"].sum(dim=1).tolist() == [8, 8]


def test_only_the_layers_that_are_named_are_pruned():
    model = tiny("llama", "causal-lm")
    before = model.model.layers[0].mlp.up_proj.weight.clone()
    units = Units.of(model, "weight", layers=[1])
    mask = prune_in_order(Wanda(layers=(1,)), model, units, EVIDENCE, MatrixSelection(0.5, "row"))
    assert mask.sparsity == 0.5
    assert torch.equal(model.model.layers[0].mlp.up_proj.weight, before)
    assert (model.model.layers[1].mlp.up_proj.weight == 0).float().mean() == 0.5


# SparseGPT's weights


def problem(rows, columns, seed, tokens=200):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(tokens, columns, generator=generator).double()
    inputs = inputs @ torch.randn(columns, columns, generator=generator).double()
    return torch.randn(rows, columns, generator=generator).double(), inputs.T @ inputs


def damped(hessian, damping=0.01):
    return hessian + damping * hessian.diagonal().mean() * torch.eye(len(hessian)).double()


def fixed(mask):
    return lambda scores, start: mask[:, start : start + scores.shape[1]]


def run(weight, hessian, mask, block=4, at_once=4):
    found = weight.float().clone()
    kept = reconstruct(found, hessian.float(), fixed(mask), damping=0.01, block=block, at_once=at_once)
    assert torch.equal(kept, mask)
    assert (found[~mask] == 0).all()
    return found.double()


def least_squares(weight, hessian, mask):
    """min (w − w')H(w − w')' over what each row keeps: H_KK w'_K = H_K: w, solved row by row."""
    found = torch.zeros_like(weight)
    for row in range(len(weight)):
        kept = mask[row]
        found[row, kept] = torch.linalg.solve(hessian[kept][:, kept], hessian[kept] @ weight[row])
    return found


def error(weight, found, hessian):
    change = weight - found
    return ((change @ hessian) * change).sum().item()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999), st.integers(1, 11))
def test_leading_columns_that_go_leave_the_solution_of_the_least_squares_problem(seed, gone):
    """Every column that stays is still free when the last of them goes: the result is the optimum for the mask."""
    weight, hessian = problem(5, 12, seed)
    mask = (torch.arange(12) >= gone).expand(5, 12)
    expected = least_squares(weight, damped(hessian), mask)
    torch.testing.assert_close(run(weight, hessian, mask), expected, rtol=2e-2, atol=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 999))
def test_each_column_that_goes_is_one_step_of_the_optimal_brain_surgeon(seed):
    """For any mask: column by column, those behind solve the least-squares problem while those before are fixed."""
    weight, hessian = problem(4, 10, seed)
    mask = torch.rand(4, 10, generator=torch.Generator().manual_seed(seed)) < 0.5
    full = damped(hessian)
    expected = weight.clone()
    for row in range(4):
        for column in torch.nonzero(~mask[row]).flatten().tolist():
            later = slice(column + 1, 10)
            value = expected[row, column].clone()
            expected[row, column] = 0.0
            expected[row, later] += torch.linalg.solve(full[later, later], full[later, column]) * value
    torch.testing.assert_close(run(weight, hessian, mask), expected, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize("block", [1, 3, 5, 16, 128])
def test_blocks_change_only_when_masks_are_chosen_not_what_a_mask_leads_to(block):
    weight, hessian = problem(6, 16, 3)
    mask = torch.rand(6, 16, generator=torch.Generator().manual_seed(1)) < 0.6
    one = run(weight, hessian, mask, block=16, at_once=16)
    torch.testing.assert_close(run(weight, hessian, mask, block, block), one, rtol=1e-3, atol=1e-4)


def test_its_error_lies_between_the_optimum_for_its_mask_and_no_update():
    weight, hessian = problem(16, 32, 5)
    found = weight.float().clone()
    kept = SparseGPT(block=8).prune(found, hessian.float(), MatrixSelection(0.5, "local"))
    assert int((~kept).sum()) == 256
    best = error(weight, least_squares(weight, damped(hessian), kept), hessian)
    mine, plain = error(weight, found.double(), hessian), error(weight, weight * kept, hessian)
    by_size = weight * MatrixSelection(0.5, "local").keep(weight.abs())
    assert best <= mine < plain
    assert mine < error(weight, by_size, hessian)


def test_scores_are_the_errors_of_removing_one_weight():
    """w² / U_ii² is the error when a weight goes and all columns behind it answer to that."""
    weight, hessian = problem(1, 6, 7)
    seen = []

    def choose(scores, start):
        seen.append(scores)
        return torch.ones_like(scores, dtype=torch.bool)

    reconstruct(weight.float().clone(), hessian.float(), choose, damping=0.01, block=6, at_once=6)
    full = damped(hessian)
    for column in range(6):
        free = slice(column, 6)
        expected = weight[0, column] ** 2 / torch.linalg.inv(full[free, free])[0, 0]
        assert seen[0][0, column].item() == pytest.approx(expected.item(), rel=1e-3)


@given(st.integers(1, 7), st.integers(1, 40), st.floats(0, 0.99), st.integers(1, 9))
@settings(deadline=None)
def test_strips_lose_together_what_the_matrix_loses(rows, columns, sparsity, block):
    weight, hessian = problem(rows, columns, 0, tokens=60)
    for scope in ("local", "row"):
        kept = SparseGPT(block=block).prune(
            weight.float().clone(), hessian.float(), MatrixSelection(sparsity, scope)
        )
        whole = MatrixSelection(sparsity, scope).keep(weight.abs())
        assert int(kept.sum()) == int(whole.sum())
        if scope == "row":
            assert torch.equal(kept.sum(dim=1), whole.sum(dim=1))


def test_inputs_that_are_never_active_do_not_break_it():
    weight, hessian = problem(4, 8, 2)
    hessian[3], hessian[:, 3] = 0.0, 0.0
    kept = SparseGPT().prune(weight.float(), hessian.float(), MatrixSelection(0.25, "row"))
    assert not kept[:, 3].any()
    nothing = SparseGPT().prune(found := weight.float(), torch.zeros(8, 8), MatrixSelection(0.5, "row"))
    assert torch.equal(nothing, MatrixSelection(0.5, "row").keep(weight.abs()))
    assert torch.equal(found[nothing], weight.float()[nothing])


def test_a_hessian_that_is_none_gets_a_sentence():
    with pytest.raises(TombolaError, match=r"search\.damping"):
        SparseGPT(damping=1e-12).prune(
            torch.randn(2, 3), torch.tensor([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]), MatrixSelection(0.5)
        )


@pytest.mark.parametrize("method", ["wanda", "ria", "sparsegpt"])
def test_what_they_cannot_prune_is_refused(method):
    kind = searches[method].settings
    with pytest.raises(ValueError, match="biases"):
        kind(biases=True)
    with pytest.raises(ValueError, match="weight"):
        kind(units="head")
    with pytest.raises(TombolaError, match="no examples to calibrate on"):
        prune_in_order(
            kind(),
            tiny("bert"),
            weights_of(tiny("bert")),
            Evidence(1, lambda count: iter(())),
            MatrixSelection(0.5),
        )
