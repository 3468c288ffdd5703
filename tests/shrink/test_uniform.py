"""Uniform masks as ordinary models: what they compute, and that plain transformers opens them."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, PreTrainedModel

from tests.children import run_python
from tests.shrink.test_shrinking import outputs
from tests.tiny import GROUPED_TYPES, MODEL_TYPES, tiny, token_ids
from tombola.errors import TombolaError
from tombola.families import family_of
from tombola.masks import Mask, Units
from tombola.shrink.uniform import head_options, shrink_uniformly

LAYERS = 4
COUNTS = {
    "distilbert": {"n_layers": LAYERS},
    "gpt2": {"n_layer": LAYERS},
    "albert": {"inner_group_num": LAYERS},
}
FREE = GROUPED_TYPES | {"phi3", "nomic_bert"}
"""The model types whose config can say fewer heads."""


def four_layers(
    model_type: str, head: str = "sequence-classification", **overrides: object
) -> PreTrainedModel:
    return tiny(model_type, head, **COUNTS.get(model_type, {"num_hidden_layers": LAYERS}), **overrides)


def mask_of(model: PreTrainedModel, layers: tuple[int, ...], heads: int, neurons: int) -> Mask:
    """The last heads and neurons of some layers, and nothing of the others."""
    units = Units.of(model, "head+neuron")
    kept = {"head": heads, "neuron": neurons}
    return Mask.from_bools(
        units,
        {
            group.name: (torch.arange(group.count) >= group.count - kept[group.kind])
            & (group.layer in layers)
            for group in units.groups
        },
    )


def by_hand(model: PreTrainedModel, mask: Mask, layers: tuple[int, ...]) -> PreTrainedModel:
    """The masked model without the layers that are gone: plain PyTorch."""
    copy, family = deepcopy(model), family_of(model)
    copy.config.use_cache = False  # a cache counts by the numbers that layers had
    mask.apply(copy)
    left = nn.ModuleList(family.layers_of(copy)[index] for index in layers)
    copy.base_model.set_submodule(family.layers, left)
    if isinstance(types := getattr(copy.config, "layer_types", None), list):
        copy.config.layer_types = [types[index] for index in layers]
    if family.config is not None:
        setattr(copy.config, family.config.layers, len(layers))
    return copy


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_it_computes_what_is_left(model_type: str, tmp_path: Path) -> None:
    model = four_layers(model_type)
    heads = 1 if model_type in FREE else 4
    mask = mask_of(model, (0, 3), heads, 16)
    small = shrink_uniformly(model, mask)
    expected = outputs(by_hand(model, mask, (0, 3)))
    torch.testing.assert_close(outputs(small), expected, atol=1e-5, rtol=0)
    assert not hasattr(small.config, "quantization_config")
    small.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(outputs(again), expected, atol=1e-5, rtol=0)
    assert len(family_of(again).layers_of(again)) == 2


def test_plain_transformers_opens_it(tmp_path: Path) -> None:
    ids, expected = token_ids(), []
    for model_type in ("bert", "llama", "modernbert"):
        model = four_layers(model_type)
        small = shrink_uniformly(model, mask_of(model, (0, 2), 1 if model_type in FREE else 4, 8))
        small.save_pretrained(tmp_path / model_type)
        with torch.no_grad():
            expected.append(small(input_ids=ids).logits)
    code = """
import json, sys, torch
from transformers import AutoModelForSequenceClassification
ids = torch.tensor(json.loads(sys.argv[2]))
found = []
for name in ("bert", "llama", "modernbert"):
    model = AutoModelForSequenceClassification.from_pretrained(f"{sys.argv[1]}/{name}")
    with torch.no_grad():
        found.append(model(input_ids=ids).logits.tolist())
assert not any(name.split(".")[0] == "tombola" for name in sys.modules)
print(json.dumps(found))
"""
    found = torch.tensor(json.loads(run_python("-c", code, tmp_path, json.dumps(ids.tolist()))))
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-5, rtol=0)


@pytest.mark.parametrize("model_type", ["llama", "gemma3_text"])
def test_in_16_bits_it_computes_what_its_folder_does(model_type: str, tmp_path: Path) -> None:
    """The frequencies of rotary positions stay in 32 bits: rounded, distant tokens would get other positions."""
    model = four_layers(model_type, "causal-lm", max_position_embeddings=512).to(torch.bfloat16)
    small = shrink_uniformly(model, mask_of(model, (0, 3), 1, 16))
    small.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert small.dtype == again.dtype == torch.bfloat16
    ids = token_ids(2, 400)
    with torch.no_grad():
        assert torch.equal(small(input_ids=ids).logits, again(input_ids=ids).logits)


def test_heads_that_a_config_can_say() -> None:
    bert, qwen, llama = (four_layers(kind) for kind in ("bert", "qwen3", "llama"))
    assert head_options(bert.config, family_of(bert)) == [4]
    assert head_options(qwen.config, family_of(qwen)) == [1, 2]
    llama.config.num_attention_heads, llama.config.num_key_value_heads = (
        8,
        8,
    )  # 8 heads of a hidden size of 16
    assert head_options(llama.config, family_of(llama)) == [1, 2, 4, 8]


def test_neurons_are_filled_up_to_the_multiple() -> None:
    model = four_layers("bert")
    mask = mask_of(model, (0, 1, 2, 3), 4, 11)
    assert shrink_uniformly(model, mask, multiple=8).config.intermediate_size == 16
    assert shrink_uniformly(model, mask, multiple=1).config.intermediate_size == 11


def test_the_small_model_trains_and_the_given_one_stays_whole() -> None:
    model = four_layers("bert")
    before = deepcopy(model.state_dict())
    small = shrink_uniformly(model, mask_of(model, (1, 2), 4, 8)).train()
    small(token_ids(), labels=torch.tensor([0, 1, 0])).loss.backward()
    assert all(parameter.grad is not None for parameter in small.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    ("model_type", "layers", "heads", "message"),
    [
        ("bert", (0, 1), 3, "cannot represent"),
        ("modernbert", (1, 2), 4, r"layer 0.*leave it out of search\.layers"),
        ("bert", (), 4, "removes all layers"),
    ],
)
def test_what_no_plain_config_describes_is_refused(
    model_type: str, layers: tuple[int, ...], heads: int, message: str
) -> None:
    model = four_layers(model_type)
    with pytest.raises(TombolaError, match=message):
        shrink_uniformly(model, mask_of(model, layers, heads, 8))


def test_layers_that_compute_by_their_number_are_refused() -> None:
    model = four_layers("gpt2", scale_attn_by_inverse_layer_idx=True)
    with pytest.raises(TombolaError, match="scale_attn_by_inverse_layer_idx"):
        shrink_uniformly(model, mask_of(model, (0, 1), 4, 8))


def test_unequal_layers_are_refused() -> None:
    model = four_layers("bert")
    units = Units.of(model, "neuron")
    kept = {name: torch.arange(24) < 8 * (1 + index % 2) for index, name in enumerate(sorted(units.by_name))}
    with pytest.raises(TombolaError, match="8 or 16 neurons"):
        shrink_uniformly(model, Mask.from_bools(units, kept))
