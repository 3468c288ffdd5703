from copy import deepcopy

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from tests.shrink.masks import half
from tests.tiny import MODEL_TYPES, tiny, token_ids
from tombola.errors import MaskMismatch, ModelError, TombolaError
from tombola.masks import Mask, Units
from tombola.shrink import LayerShape, ModelShape, count_flops, shrink
from tombola.shrink.shrinking import shape_of

pytestmark = pytest.mark.portable

KINDS = ["head", "neuron", "ffn", "layer", "head+ffn", "head+neuron"]


def masked(model: PreTrainedModel, mask: Mask) -> PreTrainedModel:
    copy = deepcopy(model)
    mask.apply(copy)
    return copy


@torch.no_grad()
def outputs(model: PreTrainedModel) -> Tensor:
    """All outputs on a padded batch, in one row."""
    ids, attended = token_ids(), torch.ones(3, 7, dtype=torch.long)
    ids[0, 4:], attended[0, 4:] = 0, 0
    given = model(input_ids=ids, attention_mask=attended)
    return torch.cat([value.flatten() for value in given.values() if isinstance(value, Tensor)])


def assert_same_outputs(one: PreTrainedModel, two: PreTrainedModel) -> None:
    torch.testing.assert_close(outputs(one), outputs(two), atol=1e-5, rtol=0)


@pytest.mark.parametrize("empty", [None, 0], ids=["all layers", "first layer empty"])
@pytest.mark.parametrize("granularity", KINDS)
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_shrunk_model_computes_what_the_masked_one_does(
    model_type: str, granularity: str, empty: int | None
) -> None:
    model = tiny(model_type)
    mask = half(model, granularity, empty=empty)
    assert_same_outputs(shrink(model, mask), masked(model, mask))


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("granularity", ["head+neuron", "layer"])
def test_exactly_the_removed_parameters_are_gone(model_type: str, granularity: str) -> None:
    model = tiny(model_type)
    mask = half(model, granularity, empty=1)
    removed = sum(int((~kept).sum()) for kept in mask.tensors(model).values())
    assert removed > 0
    assert shrink(model, mask, multiple=1).num_parameters() == model.num_parameters() - removed


@pytest.mark.parametrize(
    ("model_type", "head"),
    [
        ("bert", "base"),
        ("bert", "masked-lm"),
        ("bert", "question-answering"),
        ("bert", "token-classification"),
        ("mpnet", "masked-lm"),
        ("deberta-v2", "question-answering"),
        ("modernbert", "masked-lm"),
        ("gpt2", "causal-lm"),
        ("llama", "causal-lm"),
    ],
)
def test_any_head(model_type: str, head: str) -> None:
    model = tiny(model_type, head)
    mask = half(model, "head+neuron", seed=1)
    assert_same_outputs(shrink(model, mask), masked(model, mask))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("model_type", ["bert", "gpt2", "qwen3"])
def test_any_attention_implementation(model_type: str, implementation: str) -> None:
    model = tiny(model_type, attn_implementation=implementation)
    mask = half(model, "head")
    assert_same_outputs(shrink(model, mask), masked(model, mask))


def test_shared_position_projections_of_deberta() -> None:
    model = tiny("deberta-v2", share_att_key=True)
    mask = half(model, "head")
    assert_same_outputs(shrink(model, mask), masked(model, mask))


def test_the_given_model_stays_whole() -> None:
    model = tiny("bert")
    before = deepcopy(model.state_dict())
    shrink(model, half(model, "head+neuron"))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert shape_of(model).layers[0] == LayerShape(heads=(0, 1, 2, 3), neurons=24)


@pytest.mark.parametrize("model_type", ["gpt2", "llama", "qwen3"])
@pytest.mark.parametrize("empty", [None, 0])
def test_generation_with_a_cache(model_type: str, empty: int | None) -> None:
    model = tiny(model_type, "causal-lm")
    mask = half(model, "head+neuron", empty=empty)
    settings = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    expected, actual = (
        each.generate(token_ids(), **settings) for each in (masked(model, mask), shrink(model, mask))
    )
    assert torch.equal(expected, actual)


def test_layers_of_which_nothing_is_left_cost_nothing() -> None:
    model = tiny("bert")
    tokens, hidden = 8, 16
    pooler_and_classifier = 2 * (hidden * hidden + hidden * 2)
    nothing = ~Mask.full(Units.of(model, "layer"))
    assert count_flops(shrink(model, nothing), 1, tokens) == pooler_and_classifier
    heads = ~Mask.full(Units.of(model, "head"))
    ffns = 2 * (2 * 2 * tokens * hidden * 24)
    assert count_flops(shrink(model, heads), 1, tokens) == pooler_and_classifier + ffns


def test_a_removed_layer_loses_its_biases_and_emptied_ones_keep_them() -> None:
    model = tiny("bert")
    layers = shrink(model, half(model, "layer", empty=0)).bert.encoder.layer
    assert layers[0].attention.output.dense.bias.numel() == layers[0].output.dense.bias.numel() == 0
    layers = shrink(model, half(model, "head+neuron", empty=0)).bert.encoder.layer
    assert torch.equal(layers[0].output.dense.bias, model.bert.encoder.layer[0].output.dense.bias)


class TestFilling:
    """FFN widths are filled up to a multiple with neurons of zeros."""

    def shrunk(self, model: PreTrainedModel, kept: int) -> PreTrainedModel:
        units = Units.of(model, "neuron")
        return shrink(
            model, Mask.from_bools(units, {name: torch.arange(24) >= 24 - kept for name in units.by_name})
        )

    @pytest.mark.parametrize(("kept", "width"), [(0, 0), (1, 8), (8, 8), (9, 16), (17, 24), (24, 24)])
    def test_widths(self, kept: int, width: int) -> None:
        shrunk = self.shrunk(tiny("bert"), kept)
        assert [layer.intermediate.dense.weight.shape[0] for layer in shrunk.bert.encoder.layer] == [
            width
        ] * 2

    @pytest.mark.parametrize("kept", [1, 9, 17, 21])
    def test_filling_neurons_change_no_output(self, kept: int) -> None:
        model = tiny("bert")
        units = Units.of(model, "neuron")
        mask = Mask.from_bools(units, {name: torch.arange(24) >= 24 - kept for name in units.by_name})
        assert_same_outputs(shrink(model, mask), masked(model, mask))

    def test_widths_do_not_grow_beyond_the_model(self) -> None:
        model = tiny("bert", intermediate_size=22)
        mask = half(model, "neuron")
        widths = [layer.neurons for layer in shape_of(shrink(model, mask, multiple=32)).layers]
        assert widths == [22, 22]

    @pytest.mark.parametrize("model_type", ["bert", "llama"])
    def test_filling_neurons_stay_zero_in_training(self, model_type: str) -> None:
        shrunk = self.shrunk(tiny(model_type), 11).train()
        optimizer = torch.optim.AdamW(shrunk.parameters(), lr=0.1, weight_decay=0.1)
        for _ in range(3):
            shrunk(token_ids(), labels=torch.tensor([0, 1, 0])).loss.backward()
            optimizer.step()
        layer = shrunk.base_model.get_submodule("encoder.layer.0" if model_type == "bert" else "layers.0")
        up = layer.intermediate.dense.weight if model_type == "bert" else layer.mlp.up_proj.weight
        down = layer.output.dense.weight if model_type == "bert" else layer.mlp.down_proj.weight
        assert (up == 0).all(dim=1).sum() == (down == 0).all(dim=0).sum() == 5


def test_a_mask_that_removes_nothing_leaves_an_ordinary_model() -> None:
    model = tiny("roberta")
    shrunk = shrink(model, Mask.full(Units.of(model, "head")))
    assert not hasattr(shrunk.config, "quantization_config")
    assert torch.equal(outputs(shrunk), outputs(model))


@pytest.mark.parametrize("model_type", ["bert", "mpnet", "deberta-v2", "modernbert", "gpt2"])
def test_shrinking_twice(model_type: str) -> None:
    model = tiny(model_type)
    units = Units.of(model, "head")
    first = Mask.from_bools(units, {name: torch.tensor([1, 0, 1, 1]).bool() for name in units.by_name})
    once = shrink(model, first)
    units = Units.of(once, "head")
    second = Mask.from_bools(units, {name: torch.tensor([0, 1, 1]).bool() for name in units.by_name})
    twice = shrink(once, second.join(half(once, "neuron")), multiple=1)
    assert_same_outputs(twice, masked(once, second.join(half(once, "neuron"))))
    assert [layer.heads for layer in shape_of(twice).layers] == [(2, 3), (2, 3)]


def test_an_emptied_model_cannot_be_masked_again() -> None:
    model = tiny("bert")
    shrunk = shrink(model, half(model, "ffn", empty=0))
    with pytest.raises(ModelError, match=r"intermediate.*use the model from before it was shrunk"):
        Units.of(shrunk, "head")


@pytest.mark.parametrize("granularity", ["weight", "row", "column"])
def test_unstructured_masks_are_refused_with_the_packed_form_offered(granularity: str) -> None:
    model = tiny("bert")
    with pytest.raises(
        TombolaError, match=f"a mask of {granularity} units does not make matrices smaller.*pack"
    ):
        shrink(model, half(model, granularity))


def test_a_mask_of_another_model_is_refused() -> None:
    with pytest.raises(MaskMismatch):
        shrink(tiny("bert"), half(tiny("bert", num_hidden_layers=3), "head"))


def test_a_quantised_model_is_refused() -> None:
    model = tiny("bert")
    mask = half(model, "head")
    model.config.quantization_config = {"quant_method": "gptq"}
    with pytest.raises(TombolaError, match="gptq"):
        shrink(model, mask)


@pytest.mark.parametrize(
    "damaged",
    [
        {"layers": [], "version": 2},
        {"layers": [{"heads": [-1], "neurons": 3}]},
        {"layers": [{"heads": [1]}]},
        {"layers": [], "extra": 1},
    ],
)
def test_a_malformed_shape_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="quantization_config"):
        ModelShape.read({"quant_method": "tombola", **damaged})
