"""Calibration layer by layer against hooks on the whole model."""

import pytest
import torch

from tests.tiny import LOOPED, MODEL_TYPES, tiny, token_ids
from tombola.errors import DataError, ModelError
from tombola.families import family_of
from tombola.masks import Layout
from tombola.search.calibration import LayerWalk
from tombola.search.input_statistics import Watch

pytestmark = pytest.mark.portable

SINGLE_PASS = [one for one in MODEL_TYPES if one not in LOOPED]
DECODERS = ["gpt2", "llama", "mistral", "qwen2", "qwen3"]


def padded(number=3, side="right"):
    """Batches of unequal sizes and lengths, with padding."""
    for seed in range(number):
        size, length = 2 + seed, 6 + seed
        lengths = torch.arange(size) % 4 + length - 3
        mask = torch.arange(length) < lengths[:, None]
        mask = mask if side == "right" else mask.flip(1)
        ids = token_ids(size, length, seed).masked_fill(~mask, 0)
        yield {"input_ids": ids, "attention_mask": mask.long(), "labels": torch.zeros(size).long()}


def maps_of(model):
    matrices = [matrix for matrix in Layout.of(model).matrices if matrix.layer is not None]
    return {
        one.tensor: model.base_model.get_submodule(one.tensor.removesuffix(".weight")) for one in matrices
    }


def seen_by_the_whole_model(model, batches):
    """All rows that each linear map reads, without padding: plain hooks on plain forward passes."""
    seen = {name: [] for name in maps_of(model)}
    mask = None

    def hook(name):
        def keep(module, arguments):
            values = arguments[0].detach()
            of_tokens = values.shape[:-1] == mask.shape
            seen[name].append(values[mask] if of_tokens else values.flatten(0, -2))

        return keep

    hooks = [module.register_forward_pre_hook(hook(name)) for name, module in maps_of(model).items()]
    for batch in batches:
        mask = batch["attention_mask"].bool()
        with torch.no_grad():
            model(**batch)
    for one in hooks:
        one.remove()
    return {name: torch.cat(rows).double() for name, rows in seen.items()}


def totals(model, walk, statistic):
    found = {}
    for index in range(len(walk.layers)):
        prefix = f"{family_of(model).layers}.{index}."
        own = {name: module for name, module in maps_of(model).items() if name.startswith(prefix)}
        with Watch(walk, own, statistic) as watch:
            walk.advance(index)
        found |= watch.totals()
    return found


@pytest.mark.parametrize("model_type", SINGLE_PASS)
def test_layers_one_by_one_see_what_they_see_in_the_whole_model(model_type):
    model = tiny(model_type)
    rows = seen_by_the_whole_model(model, padded())
    squares = totals(model, LayerWalk(model, padded()), "squares")
    products = totals(model, LayerWalk(model, padded()), "hessian")
    assert squares.keys() == rows.keys()
    for name, seen in rows.items():
        torch.testing.assert_close(squares[name], seen.square().sum(0), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(products[name].double(), seen.T @ seen, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("model_type", DECODERS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_language_models_give_the_same_hidden_states(model_type, side):
    model = tiny(model_type, "causal-lm")
    walk = LayerWalk(model, padded(side=side))
    with torch.no_grad():
        expected = [
            model.base_model(**{k: v for k, v in batch.items() if k != "labels"}, output_hidden_states=True)
            for batch in padded(side=side)
        ]
    for index in range(len(walk.layers)):
        for hidden, real, whole in zip(walk.hidden, walk.real, expected, strict=True):
            torch.testing.assert_close(hidden[real], whole.hidden_states[index][real])
        walk.advance(index)


def test_sliding_windows_and_global_attention_each_keep_their_own_masks():
    """The arguments of every layer are its own: in ModernBERT they differ from layer to layer."""
    options = {"num_hidden_layers": 4, "global_attn_every_n_layers": 3, "local_attention": 4}
    model = tiny("modernbert", **options)
    rows = seen_by_the_whole_model(model, padded())
    squares = totals(model, LayerWalk(model, padded()), "squares")
    for name, seen in rows.items():
        torch.testing.assert_close(squares[name], seen.square().sum(0), rtol=1e-4, atol=1e-4)


def test_maps_with_equal_inputs_share_one_sum():
    model = tiny("llama", "causal-lm")
    walk = LayerWalk(model, padded())
    own = {name: module for name, module in maps_of(model).items() if name.startswith("layers.0.")}
    with Watch(walk, own, "hessian") as watch:
        walk.advance(0)
    found = watch.totals()
    assert len({id(total) for total in found.values()}) == 4
    assert found["layers.0.self_attn.q_proj.weight"] is found["layers.0.self_attn.v_proj.weight"]
    assert found["layers.0.mlp.gate_proj.weight"] is found["layers.0.mlp.up_proj.weight"]


def test_shared_keys_of_deberta_are_summed_over_tokens_and_positions_apart_from_values():
    model = tiny("deberta-v2", share_att_key=True)
    rows = seen_by_the_whole_model(model, padded())
    squares = totals(model, LayerWalk(model, padded()), "squares")
    for name, seen in rows.items():
        torch.testing.assert_close(squares[name], seen.square().sum(0), rtol=1e-4, atol=1e-4)
    prefix = "encoder.layer.0.attention.self"
    assert not torch.allclose(squares[f"{prefix}.query_proj.weight"], squares[f"{prefix}.value_proj.weight"])


def test_what_comes_after_the_layers_is_seen_too():
    model = tiny("bert")
    walk = LayerWalk(model, padded())
    for index in range(2):
        walk.advance(index)
    with Watch(walk, {"pooler": model.bert.pooler.dense, "head": model.classifier}, "squares") as watch:
        walk.finish()
    pooled, first = [], []
    with torch.no_grad():
        for batch in padded():
            found = model.bert(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
            pooled.append(found.pooler_output)
            first.append(found.last_hidden_state[:, 0])
    torch.testing.assert_close(watch.totals()["pooler"].float(), torch.cat(first).square().sum(0))
    torch.testing.assert_close(watch.totals()["head"].float(), torch.cat(pooled).square().sum(0))


def test_a_map_that_sees_nothing_has_seen_nothing():
    model = tiny("gpt2", "causal-lm")
    walk = LayerWalk(model, padded())
    with Watch(walk, {"later": model.transformer.h[1].mlp.c_fc}, "hessian") as watch:
        walk.advance(0)
    assert torch.equal(watch.totals()["later"], torch.zeros(16, 16))


def test_the_model_is_left_as_it_was():
    model = tiny("llama", "causal-lm")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cached = model.config.use_cache
    totals(model, LayerWalk(model, padded()), "squares")
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.config.use_cache == cached
    assert all("forward" not in vars(layer) for layer in model.model.layers)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_layers_that_are_passed_several_times_are_refused(monkeypatch):
    family = family_of(tiny("bert"))
    assert family.config is not None
    looped = family.config.model_copy(update={"layers": "inner_group_num"})
    monkeypatch.setattr(
        "tombola.search.calibration.family_of_type", lambda name: family.model_copy(update={"config": looped})
    )
    with pytest.raises(ModelError, match="models apply the same layers several times"):
        LayerWalk(tiny("bert"), padded())


@pytest.mark.parametrize("model_type", sorted(LOOPED & set(MODEL_TYPES)))
def test_looped_types_are_refused(model_type):
    with pytest.raises(ModelError, match="models apply the same layers several times"):
        LayerWalk(tiny(model_type), padded())


def test_what_cannot_be_calibrated_is_refused():
    with pytest.raises(DataError, match="no examples"):
        LayerWalk(tiny("bert"), [])
    with pytest.raises(ModelError, match="changes the output of layer 0 before layer 1"):
        LayerWalk(tiny("deberta-v2", conv_kernel_size=3, conv_act="gelu"), padded())
