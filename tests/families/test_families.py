import pytest
from transformers import AutoConfig, AutoModelForSequenceClassification

from tests.tiny import MODEL_TYPES, tiny
from tombola.errors import ModelError
from tombola.families import Family, families, family_of


def test_every_tiny_model_has_a_family_and_every_family_a_tiny_model():
    assert sorted(known for family in families() for known in family.model_types) == sorted(MODEL_TYPES)


def test_a_file_is_named_after_its_family():
    assert [family.name for family in families()] == [
        "bert",
        "deberta-v2",
        "distilbert",
        "electra",
        "gpt2",
        "llama",
        "modernbert",
        "mpnet",
        "qwen",
        "roberta",
    ]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_sizes_come_from_the_config(model_type):
    model = tiny(model_type)
    family = family_of(model)
    grouped = model_type in {"llama", "mistral", "qwen2", "qwen3"}
    assert len(family.layers_of(model)) == 2
    assert family.heads_in(model.config) == 4
    assert family.kv_heads_in(model.config) == (2 if grouped else 4)
    assert family.head_dim_in(model.config) == (8 if model_type == "qwen3" else 4)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_norm_is_pre_exactly_where_a_final_norm_ends_the_stack(model_type):
    model = tiny(model_type)
    names = {name for name, _ in model.base_model.named_children()}
    assert (family_of(model).norm == "pre") == bool(names & {"final_norm", "ln_f", "norm"})


def test_an_unknown_architecture_is_told_how_to_be_described():
    config = AutoConfig.for_model("albert", hidden_size=16, num_attention_heads=4, intermediate_size=24)
    model = AutoModelForSequenceClassification.from_config(config)
    with pytest.raises(ModelError) as error:
        family_of(model)
    sentence = str(error.value)
    assert "'albert'" in sentence
    assert "register_family in a plugin" in sentence
    assert all(known in sentence for known in MODEL_TYPES)


def test_a_family_file_with_a_misspelt_key_is_refused():
    good = families()[0].model_dump()
    assert Family.model_validate(good) == families()[0]
    with pytest.raises(ValueError, match="poolr"):
        Family.model_validate({**good, "poolr": "pooler.dense"})
