"""Zeroing a unit's weights is removing it, as hooks do that cut the unit out of the forward pass."""

import pytest
import torch

from tests.tiny import GROUPED_TYPES, MODEL_TYPES, tiny, token_ids
from tombola.masks import Mask, Units

ATTENTION_OUTPUT = {
    "distilbert": "attention.out_lin",
    "mpnet": "attention.attn.o",
    "modernbert": "attn.Wo",
    "gpt2": "attn.c_proj",
    "llama": "self_attn.o_proj",
    "mistral": "self_attn.o_proj",
    "qwen2": "self_attn.o_proj",
    "qwen3": "self_attn.o_proj",
    "eurobert": "self_attn.o_proj",
    "nomic_bert": "self_attn.o_proj",
    "smollm3": "self_attn.o_proj",
    "gemma3_text": "self_attn.o_proj",
    "phi3": "self_attn.o_proj",
    "gpt_neox": "attention.dense",
    "modernbert-decoder": "attn.Wo",
    "albert": "attention.dense",
}
DOWN = {
    "distilbert": "ffn.lin2",
    "modernbert": "mlp.Wo",
    "gpt2": "mlp.c_proj",
    "llama": "mlp.down_proj",
    "mistral": "mlp.down_proj",
    "qwen2": "mlp.down_proj",
    "qwen3": "mlp.down_proj",
    "eurobert": "mlp.down_proj",
    "nomic_bert": "mlp.down_proj",
    "smollm3": "mlp.down_proj",
    "gemma3_text": "mlp.down_proj",
    "phi3": "mlp.down_proj",
    "gpt_neox": "mlp.dense_4h_to_h",
    "modernbert-decoder": "mlp.Wo",
    "albert": "ffn_output",
}
CONTEXT_OF_A_UNIT = {**dict.fromkeys(GROUPED_TYPES, 8), "qwen3": 16}  # two query heads share a key head
VARIANTS = [
    *((name, {}) for name in MODEL_TYPES),
    ("deberta-v2", {"share_att_key": True}),
    ("modernbert", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"num_key_value_heads": 4}),
    ("llama", {"num_key_value_heads": 1, "head_dim": 2}),
]


def layer_of(model, index):
    base = model.base_model
    paths = (
        "encoder.layer",
        "transformer.layer",
        "layers",
        "h",
        "encoder.albert_layer_groups.0.albert_layers",
    )
    for path in paths:
        if any(name == path for name, _ in base.named_modules()):
            return base.get_submodule(path)[index]
    raise AssertionError("no layers")


def without_inputs(module, start, width):
    def cut(_, inputs):
        context = inputs[0].clone()
        context[..., start : start + width] = 0
        return (context, *inputs[1:])

    module.register_forward_pre_hook(cut)


def without_output(module):
    module.register_forward_hook(lambda _, inputs, output: torch.zeros_like(output))


def remove_by_hooks(model, model_type, granularity, layer, unit):
    block = layer_of(model, layer)
    attention = block.get_submodule(ATTENTION_OUTPUT.get(model_type, "attention.output.dense"))
    down = block.get_submodule(DOWN.get(model_type, "output.dense"))
    if granularity == "head":
        kv_heads = model.config.to_dict().get("num_key_value_heads") or 4
        features = attention.weight.shape[0 if model_type == "gpt2" else 1]
        without_inputs(attention, unit * features // kv_heads, features // kv_heads)
    if granularity == "neuron":
        without_inputs(down, unit, 1)
    if granularity == "ffn":
        without_output(down)
    if granularity == "layer":
        without_output(attention)
        without_output(down)


@pytest.mark.parametrize(("model_type", "overrides"), VARIANTS, ids=lambda value: str(value))
@pytest.mark.parametrize(
    ("granularity", "removed"),
    [
        ("head", [(0, -1), (1, 0)]),
        ("neuron", [(0, 0), (0, 23), (1, 7)]),
        ("ffn", [(1, 0)]),
        ("layer", [(1, 0)]),
    ],
)
def test_zeroing_is_removing(model_type, overrides, granularity, removed):
    model, hooked = tiny(model_type, **overrides), tiny(model_type, **overrides)
    ids = token_ids()
    with torch.no_grad():
        dense = model(input_ids=ids).logits
        units = Units.of(model, granularity)
        kept = {group.name: torch.ones(group.shape, dtype=torch.bool) for group in units.groups}
        for layer, unit in removed:
            group = next(group for group in units.groups if group.layer == layer)
            kept[group.name][unit] = False
            remove_by_hooks(hooked, model_type, granularity, layer, unit % group.count)
        mask = Mask.from_bools(units, kept)
        mask.apply(model)
        pruned, cut = model(input_ids=ids).logits, hooked(input_ids=ids).logits
    assert mask.removed == len(removed)
    torch.testing.assert_close(pruned, cut, atol=1e-5, rtol=0)
    assert (pruned - dense).abs().max() > 1e-3, "the unit must have mattered"


@pytest.mark.parametrize(("model_type", "overrides"), VARIANTS, ids=lambda value: str(value))
@pytest.mark.parametrize("granularity", ["head", "neuron"])
@pytest.mark.parametrize("side", ["into", "out of"])
def test_either_side_of_a_unit_alone_removes_it(model_type, overrides, granularity, side):
    """With all its matrices but the last intact, or only the last: the unit stays silent, its biases too."""
    model, hooked = tiny(model_type, **overrides), tiny(model_type, **overrides)
    before = {name: value.clone() for name, value in model.base_model.named_parameters()}
    units = Units.of(model, granularity)
    group = units.groups[1]
    kept = {g.name: torch.ones(g.shape, dtype=torch.bool) for g in units.groups}
    kept[group.name][1 % group.count] = False
    Mask.from_bools(units, kept).apply(model)
    remove_by_hooks(hooked, model_type, granularity, 1, 1 % group.count)
    last = group.parts[-1].tensor
    with torch.no_grad():
        for name, value in model.base_model.named_parameters():
            if (name == last) == (side == "into"):
                value.copy_(before[name])
        pruned, cut = model(input_ids=token_ids()).logits, hooked(input_ids=token_ids()).logits
    torch.testing.assert_close(pruned, cut, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("model_type", "granularity", "biases"),
    [
        ("bert", "head", 3 * 4),
        ("bert", "neuron", 1),
        ("bert", "ffn", 24 + 16),
        ("bert", "layer", 4 * 16 + 24 + 16),
        ("bert", "row", 1),
        ("bert", "column", 0),
        ("bert", "weight", 0),
        ("deberta-v2", "head", 5 * 4),
        ("gpt2", "head", 3 * 4),
        ("gpt2", "layer", 3 * 16 + 16 + 24 + 16),
        ("qwen2", "head", 8 + 4 + 4),
        ("qwen2", "neuron", 0),
        ("modernbert", "layer", 0),
    ],
)
def test_biases_go_with_their_unit(model_type, granularity, biases):
    model = tiny(model_type)
    units = Units.of(model, granularity)
    kept = {g.name: torch.ones(g.shape, dtype=torch.bool) for g in units.groups}
    kept[units.groups[0].name].view(-1)[0] = False
    removed = Mask.from_bools(units, kept).tensors(model)
    assert sum(int((~own).sum()) for own in removed.values() if own.dim() == 1) == biases


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_head_is_as_wide_as_its_share_of_the_context(model_type):
    group = Units.of(tiny(model_type), "head").groups[0]
    width = CONTEXT_OF_A_UNIT.get(model_type, 4)
    assert group.count == (2 if model_type in CONTEXT_OF_A_UNIT else 4)
    together = 3 if model_type == "gpt_neox" else 1  # query, key and value of a head are one part
    assert (group.parts[0].width, group.parts[-1].width) == (together * width, width)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("granularity", ["weight", "neuron", "head", "ffn", "layer", "row", "column"])
def test_apply_zeroes_exactly_what_tensors_names(model_type, granularity):
    model = tiny(model_type)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    units = Units.of(model, granularity)
    generator = torch.Generator().manual_seed(3)
    mask = Mask.from_bools(
        units, {g.name: torch.rand(g.shape, generator=generator) < 0.5 for g in units.groups}
    )
    kept = mask.tensors(model)
    assert {name: own.shape for name, own in kept.items()} == {
        name: value.shape for name, value in model.base_model.named_parameters() if name in kept
    }
    mask.apply(model)
    prefix = model.base_model_prefix
    zeroed = 0
    for name, value in model.state_dict().items():
        own = kept.get(name.removeprefix(f"{prefix}."), torch.ones_like(value, dtype=torch.bool))
        assert torch.equal(value, torch.where(own, before[name], 0.0)), name
        zeroed += int((~own).sum()) if value.dim() == 2 else 0
    assert zeroed == mask.removed_weights == mask.expand().removed
    assert all(not value.all() for value in kept.values())


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "modernbert"])
def test_expanded_mask_zeroes_the_same_weights(model_type):
    model = tiny(model_type)
    units = Units.of(model, "head")
    mask = Mask.from_bools(units, {g.name: torch.arange(g.count) != 2 for g in units.groups})
    structured = {name: kept for name, kept in mask.tensors(model).items() if kept.dim() == 2}
    expanded = mask.expand().tensors(model)
    assert structured.keys() == expanded.keys()
    assert all(torch.equal(structured[name], expanded[name]) for name in expanded)


def test_output_bias_outlives_its_heads_but_not_its_layer():
    model = tiny("bert")
    heads = ~Mask.full(Units.of(model, "head"))
    layers = ~Mask.full(Units.of(model, "layer"))
    bias = "encoder.layer.0.attention.output.dense.bias"
    assert bias not in heads.tensors(model)
    assert not layers.tensors(model)[bias].any()


def test_spread_is_differentiable():
    """A gate per head, spread over the weights, gets the gradient of every weight that it multiplies."""
    model = tiny("gpt2")
    units = Units.of(model, "head")
    gates = {g.name: torch.ones(g.shape, requires_grad=True) for g in units.groups}
    matrices = units.matrices(model)
    gated = {name: values for name, values in units.spread(gates) if name in matrices}
    sum((values * matrices[name].detach()).sum() for name, values in gated.items()).backward()
    c_attn, c_proj = (matrices[f"h.1.attn.{name}.weight"].detach() for name in ("c_attn", "c_proj"))
    by_head = c_attn.reshape(16, 3, 4, 4).sum(dim=(0, 1, 3)) + c_proj.reshape(4, 4, 16).sum(dim=(1, 2))
    torch.testing.assert_close(gates["layers.1.heads"].grad, by_head)
