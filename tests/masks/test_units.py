"""What the units cover, against lists of tensors and numbers written down by hand."""

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig

from tests.tiny import MODEL_TYPES, tiny
from tombola.errors import MaskMismatch, ModelError, RecipeError, TombolaError, UnknownName
from tombola.masks import Mask, Scores, Units, draw, fingerprint

BERT_LAYER = {
    "attention.self.query": (16, 16),
    "attention.self.key": (16, 16),
    "attention.self.value": (16, 16),
    "attention.output.dense": (16, 16),
    "intermediate.dense": (24, 16),
    "output.dense": (16, 24),
}
LLAMA_LAYER = {
    "self_attn.q_proj": (16, 16),
    "self_attn.k_proj": (8, 16),
    "self_attn.v_proj": (8, 16),
    "self_attn.o_proj": (16, 16),
    "mlp.gate_proj": (24, 16),
    "mlp.up_proj": (24, 16),
    "mlp.down_proj": (16, 24),
}
EXPECTED = {  # model type: path of the layers, matrices of a layer, weights of the 2-layer model
    "bert": ("encoder.layer", BERT_LAYER, 2 * 1792 + 256),
    "roberta": ("encoder.layer", BERT_LAYER, 2 * 1792),
    "xlm-roberta": ("encoder.layer", BERT_LAYER, 2 * 1792),
    "camembert": ("encoder.layer", BERT_LAYER, 2 * 1792),
    "electra": ("encoder.layer", BERT_LAYER, 2 * 1792),
    "distilbert": (
        "transformer.layer",
        {
            "attention.q_lin": (16, 16),
            "attention.k_lin": (16, 16),
            "attention.v_lin": (16, 16),
            "attention.out_lin": (16, 16),
            "ffn.lin1": (24, 16),
            "ffn.lin2": (16, 24),
        },
        2 * 1792,
    ),
    "mpnet": (
        "encoder.layer",
        {
            "attention.attn.q": (16, 16),
            "attention.attn.k": (16, 16),
            "attention.attn.v": (16, 16),
            "attention.attn.o": (16, 16),
            "intermediate.dense": (24, 16),
            "output.dense": (16, 24),
        },
        2 * 1792,
    ),
    "deberta-v2": (
        "encoder.layer",
        {
            "attention.self.query_proj": (16, 16),
            "attention.self.key_proj": (16, 16),
            "attention.self.value_proj": (16, 16),
            "attention.self.pos_key_proj": (16, 16),
            "attention.self.pos_query_proj": (16, 16),
            "attention.output.dense": (16, 16),
            "intermediate.dense": (24, 16),
            "output.dense": (16, 24),
        },
        2 * 2304,
    ),
    "modernbert": (
        "layers",
        {"attn.Wqkv": (48, 16), "attn.Wo": (16, 16), "mlp.Wi": (48, 16), "mlp.Wo": (16, 24)},
        2 * 2176,
    ),
    "gpt2": (
        "h",
        {"attn.c_attn": (16, 48), "attn.c_proj": (16, 16), "mlp.c_fc": (16, 24), "mlp.c_proj": (24, 16)},
        2 * 1792,
    ),
    "llama": ("layers", LLAMA_LAYER, 2 * 1920),
    "mistral": ("layers", LLAMA_LAYER, 2 * 1920),
    "qwen2": ("layers", LLAMA_LAYER, 2 * 1920),
    "qwen3": (
        "layers",
        LLAMA_LAYER
        | {
            "self_attn.q_proj": (32, 16),
            "self_attn.k_proj": (16, 16),
            "self_attn.v_proj": (16, 16),
            "self_attn.o_proj": (16, 32),
        },
        2 * 2688,
    ),
    "eurobert": ("layers", LLAMA_LAYER, 2 * 1920),
    "smollm3": ("layers", LLAMA_LAYER, 2 * 1920),
    "gemma3_text": ("layers", LLAMA_LAYER, 2 * 1920),
    "nomic_bert": (
        "layers",
        LLAMA_LAYER | {"self_attn.k_proj": (16, 16), "self_attn.v_proj": (16, 16)},
        2 * 2176,
    ),
    "xlm-roberta-xl": ("encoder.layer", BERT_LAYER, 2 * 1792),
    "albert": (
        "encoder.albert_layer_groups.0.albert_layers",
        {
            "attention.query": (16, 16),
            "attention.key": (16, 16),
            "attention.value": (16, 16),
            "attention.dense": (16, 16),
            "ffn": (24, 16),
            "ffn_output": (16, 24),
        },
        2 * 1792 + 256,
    ),
    "phi3": (
        "layers",
        {
            "self_attn.qkv_proj": (32, 16),  # four heads of queries, two of keys and of values
            "self_attn.o_proj": (16, 16),
            "mlp.gate_up_proj": (48, 16),
            "mlp.down_proj": (16, 24),
        },
        2 * 1920,
    ),
    "gpt_neox": (
        "layers",
        {
            "attention.query_key_value": (48, 16),
            "attention.dense": (16, 16),
            "mlp.dense_h_to_4h": (24, 16),
            "mlp.dense_4h_to_h": (16, 24),
        },
        2 * 1792,
    ),
    "modernbert-decoder": (
        "layers",
        {
            "attn.q_proj": (16, 16),
            "attn.k_proj": (16, 16),
            "attn.v_proj": (16, 16),
            "attn.Wo": (16, 16),
            "mlp.Wi": (48, 16),
            "mlp.Wo": (16, 24),
        },
        2 * 2176,
    ),
}
POOLERS = {"bert": "pooler.dense", "albert": "pooler"}
UNFUSED = [name for name in MODEL_TYPES if name not in {"modernbert", "gpt2", "phi3", "modernbert-decoder"}]


def expected_shapes(model_type: str) -> dict[str, tuple[int, ...]]:
    layers, matrices, _ = EXPECTED[model_type]
    shapes = {f"{layers}.{n}.{path}.weight": shape for n in range(2) for path, shape in matrices.items()}
    return shapes | ({f"{POOLERS[model_type]}.weight": (16, 16)} if model_type in POOLERS else {})


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_weights_are_exactly_the_encoder_matrices(model_type):
    model = tiny(model_type)
    units = Units.of(model, "weight")
    matrices = units.matrices(model)
    assert {name: tuple(matrix.shape) for name, matrix in matrices.items()} == expected_shapes(model_type)
    assert units.count == units.weights == units.prunable == EXPECTED[model_type][2]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("granularity", ["weight", "row", "column"])
def test_matrix_units_cover_every_weight_once(model_type, granularity):
    model = tiny(model_type)
    units = Units.of(model, granularity)
    seen = {name: torch.zeros_like(matrix) for name, matrix in units.matrices(model).items()}
    for group in units.groups:
        for part in group.parts:
            part.region(seen[part.tensor], group.count).add_(1)
    assert all(bool((count == 1).all()) for count in seen.values())


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_rows_are_output_features_and_columns_input_features(model_type):
    model = tiny(model_type)
    matrices = expected_shapes(model_type)
    out, into = (1, 0) if model_type == "gpt2" else (0, 1)
    fused = {"attn.Wqkv": 3, "attn.c_attn": 3, "mlp.Wi": 2, "qkv_proj": 3, "gate_up_proj": 2}
    blocks = {name: next((n for path, n in fused.items() if path in name), 1) for name in matrices}
    rows, columns = Units.of(model, "row"), Units.of(model, "column")
    assert rows.count == sum(shape[out] for shape in matrices.values())
    assert columns.count == sum(shape[into] * blocks[name] for name, shape in matrices.items())
    assert rows.weights == columns.weights == rows.prunable


@pytest.mark.parametrize("model_type", UNFUSED)
def test_groups_of_unfused_matrices_carry_the_modules_names(model_type):
    units = Units.of(tiny(model_type), "weight")
    assert {f"{group.name}.weight" for group in units.groups} == set(expected_shapes(model_type))
    assert len(units.groups) == len(expected_shapes(model_type))


@pytest.mark.parametrize("model_type", ["modernbert", "gpt2"])
def test_fused_matrices_are_taken_apart(model_type):
    model = tiny(model_type)
    units = Units.of(model, "weight")
    fused = "layers.1.attn.Wqkv" if model_type == "modernbert" else "h.1.attn.c_attn"
    stored = units.matrices(model)[f"{fused}.weight"]
    for block, role in enumerate(["query", "key", "value"]):
        group = units.by_name[f"{fused}.{role}"]
        (part,) = group.parts
        start = slice(16 * block, 16 * block + 16)
        own = stored[:, start] if model_type == "gpt2" else stored[start]
        assert (group.kind, group.layer, group.shape) == (role, 1, (16, 16))
        assert torch.equal(part.region(stored, group.count), own)


def test_deberta_that_shares_its_keys_has_no_position_matrices():
    units = Units.of(tiny("deberta-v2", share_att_key=True), "weight")
    assert units.count == 2 * 1792
    assert not {"position_key", "position_query"} & {group.kind for group in units.groups}
    one_sided = Units.of(tiny("deberta-v2", pos_att_type=["c2p"]), "weight")
    assert one_sided.count == 2 * 2048


@pytest.mark.parametrize("head", ["base", "masked-lm", "question-answering"])
def test_names_are_the_same_below_every_head(head):
    classifier, other = tiny("roberta"), tiny("roberta", head)
    assert Units.of(classifier, "weight").groups == Units.of(other, "weight").groups


def test_an_adapted_model_is_refused():
    model = tiny("bert")
    torch.nn.utils.parametrizations.weight_norm(model.bert.encoder.layer[1].output.dense)
    with pytest.raises(ModelError, match=r"encoder\.layer\.1\.output\.dense\.weight"):
        Units.of(model, "weight")


def test_unknown_granularity_offers_the_nearest():
    with pytest.raises(UnknownName, match="neuron"):
        Units.of(tiny("bert"), "neurone")


# BERT-base, on the meta device: the numbers of the papers


@pytest.fixture(scope="module")
def bert_base():
    with torch.device("meta"):
        return AutoModelForSequenceClassification.from_config(BertConfig())


def test_bert_base_has_73_matrices_and_85_524_480_weights(bert_base):
    units = Units.of(bert_base, "weight")
    assert (len(units.groups), units.count, units.parameters) == (73, 85_524_480, 109_482_240)
    assert units.base.fingerprint is None
    assert units.base.geometry == {
        "layers": 12,
        "hidden": 768,
        "heads": 12,
        "kv_heads": 12,
        "head_dim": 64,
        "ffn": 3072,
    }


def test_bert_base_without_pooler_has_72_matrices_and_84_934_656_weights(bert_base):
    with torch.device("meta"):
        language_model = AutoModelForMaskedLM.from_config(BertConfig())
    units = Units.of(language_model, "weight")
    assert (len(units.groups), units.count) == (72, 84_934_656)
    assert Units.of(bert_base, "weight").without("pooler").same_as(units)


@pytest.mark.parametrize(
    ("granularity", "count", "weights_of_one"),
    [
        ("head", 144, 4 * 64 * 768),
        ("ffn", 12, 2 * 768 * 3072),
        ("neuron", 12 * 3072, 2 * 768),
        ("layer", 12, 4 * 768 * 768 + 2 * 768 * 3072),
    ],
)
def test_structured_units_of_bert_base(bert_base, granularity, count, weights_of_one):
    units = Units.of(bert_base, granularity)
    assert units.count == count
    assert {group.unit_weights for group in units.groups} == {weights_of_one}


def test_joint_sweep_of_heads_and_ffns_leaves_the_published_share(bert_base):
    """Super Tickets: heads and FFNs removed together, and what remains of the encoder's parameters."""
    heads, ffns = Units.of(bert_base, "head"), Units.of(bert_base, "ffn")
    zeros = [Scores(units, {g.name: torch.zeros(g.shape) for g in units.groups}) for units in (heads, ffns)]
    remaining = []
    for n_heads, n_ffns in [(14, 1), (28, 2), (43, 3), (57, 4), (72, 5), (86, 6), (100, 7), (115, 8)]:
        mask = draw(zeros[0], remove=n_heads).join(draw(zeros[1], remove=n_ffns))
        assert mask.removed_weights == n_heads * 4 * 64 * 768 + n_ffns * 2 * 768 * 3072
        remaining.append(round(100 * (1 - mask.parameter_sparsity), 1))
    assert remaining == [93.2, 86.4, 79.3, 72.5, 65.5, 58.7, 51.9, 44.9]


# Fingerprints


def test_fingerprint_is_shared_by_all_versions_of_one_base():
    classifier = tiny("bert")
    language_model, answering = tiny("bert", "masked-lm", seed=1), tiny("bert", "question-answering", seed=2)
    for model in (language_model, answering):
        model.bert.load_state_dict(classifier.bert.state_dict(), strict=False)
    prints = {fingerprint(model).fingerprint for model in (classifier, language_model, answering)}
    assert len(prints) == 1
    assert len(prints.pop()) == 32


@pytest.mark.parametrize("part", ["query", "down"])
def test_fingerprint_sees_one_changed_weight(part):
    model = tiny("bert")
    before = fingerprint(model)
    layer = model.bert.encoder.layer[1]
    matrix = {"query": layer.attention.self.query, "down": layer.output.dense}[part].weight
    with torch.no_grad():
        matrix[-1, -1].add_(1e-3)
    after = fingerprint(model)
    assert before.fingerprint != after.fingerprint
    assert before.geometry == after.geometry


def test_fingerprint_does_not_see_head_pooler_embeddings_or_precision():
    model = tiny("bert").to(torch.bfloat16)
    before = fingerprint(model)
    with torch.no_grad():
        for parameter in (model.classifier.weight, model.bert.pooler.dense.weight):
            parameter.zero_()
        model.bert.embeddings.word_embeddings.weight.zero_()
    assert fingerprint(model.to(torch.float32)) == before


def test_a_known_base_is_taken_as_it_is():
    model = tiny("bert")
    base = fingerprint(tiny("bert", seed=5))
    assert Mask.full(Units.of(model, "head", base)).base == base


def test_the_heads_matrices_can_be_among_the_units():
    model = tiny("roberta", num_labels=3)
    plain, with_head = Units.of(model, "weight"), Units.of(model, "weight", classifier=True)
    added = [group for group in with_head.groups if group.name not in plain.by_name]
    assert {group.name: group.shape for group in added} == {
        "head.classifier.dense": (16, 16),
        "head.classifier.out_proj": (3, 16),
    }
    assert with_head.prunable - plain.prunable == 16 * 16 + 3 * 16
    assert with_head.parameters == sum(parameter.numel() for parameter in model.parameters())
    mask = draw(Scores.magnitude(with_head, model), sparsity=0.5, scope="local")
    assert mask.removed == sum(round(group.count / 2) for group in with_head.groups)
    weight = model.classifier.out_proj.weight.detach().clone()
    mask.apply(model)
    assert torch.equal(model.classifier.out_proj.weight == 0, ~mask["head.classifier.out_proj"])
    threshold = weight.abs().flatten().kthvalue(24).values
    assert torch.equal(mask["head.classifier.out_proj"], weight.abs() > threshold)


def test_a_mask_of_the_head_fits_no_other_head_and_no_bare_encoder():
    mask = Mask.full(Units.of(tiny("bert", num_labels=3), "weight", classifier=True))
    with pytest.raises(MaskMismatch, match=r"head\.classifier\.weight has shape \(2, 16\), not \(3, 16\)"):
        mask.check(tiny("bert", num_labels=2))
    with pytest.raises(MaskMismatch, match=r"head\.classifier\.weight has shape None"):
        mask.check(tiny("bert", "base"))
    mask.without("classifier").check(tiny("bert", "base"))
    with pytest.raises(ModelError, match="no task head"):
        Units.of(tiny("bert", "base"), "weight", classifier=True)


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "llama"])
def test_biases_can_be_among_the_units_entry_by_entry(model_type):
    model = tiny(model_type)
    plain, biased = Units.of(model, "weight"), Units.of(model, "weight", biases=True)
    added = [group for group in biased.groups if group.name not in plain.by_name]
    sizes = sum(matrix.outputs for matrix in plain.layout.matrices if matrix.bias)
    assert biased.count - plain.count == biased.prunable - plain.prunable == sizes
    assert bool(added) == (model_type != "llama")
    assert not plain.same_as(biased)
    scores = Scores.magnitude(biased, model)
    mask = draw(scores, sparsity=0.3)
    assert mask.removed == round(0.3 * biased.count)
    before = {name: parameter.detach().clone() for name, parameter in model.base_model.named_parameters()}
    for group in added:
        (part,) = group.parts
        assert torch.equal(scores[group.name], part.region(before[part.tensor], group.count).abs())
    mask.apply(model)
    total = sum(int((parameter == 0).sum()) for parameter in model.base_model.parameters())
    assert total == mask.removed
    for group in added:
        (part,) = group.parts
        kept, values = mask[group.name], part.region(before[part.tensor], group.count)
        now = part.region(dict(model.base_model.named_parameters())[part.tensor], group.count)
        assert torch.equal(now, values * kept)
    with pytest.raises(TombolaError, match="together with single weights"):
        Units.of(model, "head", biases=True)


def test_only_some_layers_can_be_prunable():
    model = tiny("bert")
    all_units, second = Units.of(model, "weight"), Units.of(model, "weight", layers=[1])
    assert second.prunable == all_units.prunable - 1792
    assert {group.layer for group in second.groups} == {1, None}
    mask = draw(Scores.magnitude(second.without("pooler"), model), sparsity=0.5)
    assert mask.removed == 1792 // 2
    assert mask.weight_sparsity == 0.5
    mask.apply(model)
    assert all(bool(parameter.all()) for parameter in model.bert.encoder.layer[0].parameters())
    heads = Units.of(model, "head+ffn", layers=[0])
    assert [group.name for group in heads.groups] == ["layers.0.heads", "layers.0.ffn"]
    with pytest.raises(RecipeError, match="there is no layer 2: the model has layers 0 to 1"):
        Units.of(model, "weight", layers=[0, 2])


def test_the_choice_of_units_is_stored_with_the_mask(tmp_path):
    model = tiny("bert", num_labels=3)
    units = Units.of(model, "weight", classifier=True, biases=True, layers=[0])
    mask = draw(Scores.magnitude(units, model), sparsity=0.4)
    mask.save(tmp_path / "mask.safetensors")
    loaded = Mask.load(tmp_path / "mask.safetensors")
    assert loaded == mask
    assert loaded.units.prunable == units.prunable
    assert loaded.weight_sparsity == mask.weight_sparsity
    assert set(loaded.by_kind()) >= {"classifier", "bias", "query", "pooler"}
    plain = draw(Scores.magnitude(Units.of(model, "weight", layers=[0]), model), sparsity=0.4)
    with_head = Units.of(model, "weight", layers=[0], classifier=True)
    assert plain.overlap(draw(Scores.magnitude(with_head, model), 0.4)) > 0.9
    with pytest.raises(MaskMismatch, match="do not cover the same units"):
        plain.overlap(mask)


@pytest.mark.parametrize("model_type", ["modernbert", "modernbert-decoder"])
def test_a_layer_that_the_family_must_keep_is_no_unit(model_type):
    model = tiny(model_type, num_hidden_layers=4)
    units = Units.of(model, "layer")
    assert [group.layer for group in units.groups] == [1, 2, 3]
    assert units.prunable == Units.of(model, "weight").count
    with pytest.raises(RecipeError, match=r"search\.layers: layer 0 .* cannot be removed"):
        Units.of(model, "layer", layers=(0, 1))
    assert Units.of(model, "head", layers=(0, 1)).count == 8
