import pytest
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from tests.tiny import GROUPED_TYPES, MODEL_TYPES, tiny
from tombola.errors import ModelError
from tombola.families import ConfigKeys, Family, families, family_of
from tombola.masks import Units


def test_every_tiny_model_has_a_family_and_every_family_a_tiny_model():
    assert sorted(known for family in families() for known in family.model_types) == sorted(MODEL_TYPES)


def test_a_file_is_named_after_its_family():
    assert [family.name for family in families()] == [
        "albert",
        "bert",
        "deberta-v2",
        "distilbert",
        "electra",
        "eurobert",
        "gemma3",
        "gpt2",
        "gpt_neox",
        "llama",
        "modernbert-decoder",
        "modernbert",
        "mpnet",
        "nomic_bert",
        "phi3",
        "qwen",
        "roberta",
        "smollm3",
        "xlm-roberta-xl",
    ]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_sizes_come_from_the_config(model_type):
    model = tiny(model_type)
    family = family_of(model)
    grouped = model_type in GROUPED_TYPES
    assert len(family.layers_of(model)) == 2
    assert family.heads_in(model.config) == 4
    assert family.kv_heads_in(model.config) == (2 if grouped else 4)
    assert family.head_dim_in(model.config) == (8 if model_type == "qwen3" else 4)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_norm_is_pre_exactly_where_a_final_norm_ends_the_stack(model_type):
    model = tiny(model_type)
    names = {name for name, _ in model.base_model.named_children()}
    final = bool(names & {"final_norm", "final_layer_norm", "ln_f", "norm"})
    if model_type == "xlm-roberta-xl":
        final = isinstance(model.base_model.encoder.LayerNorm, nn.LayerNorm)
    assert (family_of(model).norm == "pre") == final


def test_an_unknown_architecture_is_told_how_to_be_described():
    config = AutoConfig.for_model(
        "opt", hidden_size=16, num_attention_heads=4, ffn_dim=24, word_embed_proj_dim=16
    )
    model = AutoModelForSequenceClassification.from_config(config)
    with pytest.raises(ModelError) as error:
        family_of(model)
    sentence = str(error.value)
    assert "'opt'" in sentence
    assert "register_family in a plugin" in sentence
    assert all(known in sentence for known in MODEL_TYPES)


def test_a_model_of_another_library_is_refused():
    with pytest.raises(ModelError, match="Linear is not a transformers model"):
        Units.of(nn.Linear(3, 3), "head")


def test_a_family_file_with_a_misspelt_key_is_refused():
    good = families()[0].model_dump()
    assert Family.model_validate(good) == families()[0]
    with pytest.raises(ValueError, match="poolr"):
        Family.model_validate({**good, "poolr": "pooler.dense"})


@pytest.mark.parametrize(
    ("model_type", "sizes", "reason"),
    [
        (
            "t5",
            {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_heads": 4, "vocab_size": 64},
            "one position bias per head",
        ),
        (
            "bart",
            {"d_model": 16, "vocab_size": 64, "pad_token_id": 0, "eos_token_id": 2},
            "two stacks of layers",
        ),
    ],
)
def test_what_cannot_be_described_is_told_why(model_type, sizes, reason):
    model = AutoModel.from_config(AutoConfig.for_model(model_type, **sizes))
    with pytest.raises(ModelError, match=rf"{reason}.*Use an encoder or a decoder.*llama"):
        family_of(model)


def test_a_model_that_is_built_unlike_its_family_is_told_why():
    with pytest.raises(ModelError, match=r"several groups.*num_hidden_groups is 2, not 1"):
        family_of(tiny("albert", num_hidden_groups=2))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"layers": "encoder.layers"}, "no list of layers at 'encoder.layers'"),
        ({"layers": "embeddings"}, "no list of layers at 'embeddings'"),
        ({"heads": "n_heads"}, "reads 'n_heads' from the config, but a bert model has no such key"),
        ({"kv_heads": "n_kv_heads"}, "reads 'n_kv_heads' from the config"),
        ({"only": {"hidden_size": "width"}}, "reads 'width' from the config"),
        (
            {"config": ConfigKeys(layers="depth", neurons="intermediate_size")},
            "reads 'depth' from the config",
        ),
        (
            {"config": ConfigKeys(layers="num_hidden_layers", neurons="width")},
            "reads 'width' from the config",
        ),
    ],
)
def test_a_wrong_description_of_a_family_is_explained(wrong, reason):
    model = tiny("bert")
    family = family_of(model).model_copy(update=wrong)
    read = family.layers_of if "layers" in wrong else lambda model: family.check(model.config)
    with pytest.raises(ModelError, match=reason):
        read(model)


def test_what_albert_loses_is_gone_from_all_of_its_layers():
    one, two = (tiny("albert", inner_group_num=1, num_hidden_layers=layers) for layers in (1, 3))
    assert Units.of(one, "head").count == Units.of(two, "head").count == 4
    assert [len(family_of(model).layers_of(model)) for model in (one, two)] == [1, 1]
