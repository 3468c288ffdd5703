"""Each control destroys exactly what it says, and nothing else."""

import pytest
import torch

from tests.tiny import MODEL_TYPES, tiny
from tombola.errors import ModelError
from tombola.masks import Mask, Scores, Units, draw
from tombola.masks.drawing import random_scores
from tombola.masks.perturb import perturb
from tombola.models.controls import Noise, Reinitialise, Shuffle, apply_control
from tombola.shrink import shrink


def changed(control, seed=3):
    model, before = tiny("bert"), tiny("bert").state_dict()
    apply_control(control, model, seed)
    return before, model.state_dict(), Units.of(model, "weight").matrices(model)


def test_shuffling_keeps_the_entries_of_each_matrix_and_moves_them():
    before, after, matrices = changed(Shuffle(kind="shuffle"))
    for name in matrices:
        one, two = before[f"bert.{name}"], after[f"bert.{name}"]
        assert torch.equal(one.flatten().sort().values, two.flatten().sort().values)
        assert not torch.equal(one, two)
    assert torch.equal(
        before["bert.embeddings.word_embeddings.weight"], after["bert.embeddings.word_embeddings.weight"]
    )
    assert torch.equal(before["classifier.weight"], after["classifier.weight"])


@pytest.mark.parametrize(("model_type", "fused"), [("gpt2", "attn.c_attn"), ("phi3", "self_attn.qkv_proj")])
def test_the_matrices_of_a_fused_tensor_are_destroyed_each_by_itself(model_type, fused):
    """Queries, keys and values of different sizes stay as large as they were, and get noise of their own size."""

    def regions(model):
        units = Units.of(model, "weight")
        stored = units.matrices(model)
        parts = [(group, part) for group in units.groups for part in group.parts if fused in part.tensor]
        return [part.region(stored[part.tensor].detach(), group.count) for group, part in parts]

    def scaled():
        model = tiny(model_type)
        for region, size in zip(regions(model), 2 * (1, 100, 10000), strict=True):
            region.mul_(size)
        return model

    before, shuffled, noisy = scaled(), scaled(), scaled()
    apply_control(Shuffle(kind="shuffle"), shuffled, 3)
    apply_control(Noise(kind="noise", sigma=0.5), noisy, 3)
    for one, two, three in zip(*map(regions, (before, shuffled, noisy)), strict=True):
        assert torch.equal(one.flatten().sort().values, two.flatten().sort().values)
        assert not torch.equal(one, two)
        assert (three - one).std() / one.std() == pytest.approx(0.5, rel=0.25)


def test_shuffling_layers_moves_their_matrices_alone():
    """As released: biases and LayerNorms stay where they are, and so does the pooler."""
    before, after, matrices = changed(Shuffle(kind="shuffle", across="layers"), seed=1)
    layered = [f"bert.{name}" for name in matrices if "layer" in name]
    assert len(layered) == 12
    for name, value in after.items():
        other = (
            name.replace("layer.0.", "layer.1.")
            if "layer.0." in name
            else name.replace("layer.1.", "layer.0.")
        )
        assert torch.equal(value, before[other if name in layered else name]), name
    assert not torch.equal(before[layered[0]], after[layered[0]])


def test_shuffling_whole_layers_moves_all_of_them():
    before, after, _ = changed(Shuffle(kind="shuffle", across="whole_layers"), seed=1)
    for name, value in after.items():
        other = (
            name.replace("layer.0.", "layer.1.")
            if "layer.0." in name
            else name.replace("layer.1.", "layer.0.")
        )
        assert torch.equal(value, before[other]), name


@pytest.mark.parametrize("model_type", ["modernbert", "modernbert-decoder"])
def test_a_norm_that_the_first_layer_lacks_stays_where_it_is(model_type):
    model, before = tiny(model_type), tiny(model_type).state_dict()
    apply_control(Shuffle(kind="shuffle", across="whole_layers"), model, 1)
    after = {name: value for name, value in model.state_dict().items() if "layers.1." in name}
    unpaired = [name for name in after if name.replace("layers.1.", "layers.0.") not in before]
    assert len(unpaired) == 1
    for name, value in after.items():
        other = name if name in unpaired else name.replace("layers.1.", "layers.0.")
        assert torch.equal(value, before[other]), name


def test_shuffling_layers_moves_a_fused_tensor_once():
    model, before = tiny("gpt2"), tiny("gpt2").state_dict()
    apply_control(Shuffle(kind="shuffle", across="layers"), model, 1)
    for one, two in ((0, 1), (1, 0)):
        for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"):
            new, old = f"transformer.h.{one}.{name}", f"transformer.h.{two}.{name}"
            assert torch.equal(model.state_dict()[f"{new}.weight"], before[f"{old}.weight"])
            assert torch.equal(model.state_dict()[f"{new}.bias"], before[f"{new}.bias"])


@pytest.mark.parametrize(
    "model_type", ["bert", "roberta", "distilbert", "electra", "mpnet", "deberta-v2", "modernbert"]
)
def test_reinitialising_a_language_model_leaves_nothing_of_its_pre_training(model_type):
    model, before = tiny(model_type, "masked-lm"), tiny(model_type, "masked-lm").state_dict()
    apply_control(Reinitialise(kind="reinitialise"), model, 3)
    after = model.state_dict()
    assert [name for name, value in after.items() if torch.equal(value, before[name])] == []
    embeddings, decoder = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    assert torch.equal(embeddings, decoder)
    again = tiny(model_type, "masked-lm", seed=5)
    apply_control(Reinitialise(kind="reinitialise"), again, 3)
    assert all(torch.equal(value, after[name]) for name, value in again.state_dict().items())


def test_reinitialising_draws_the_encoder_anew_and_keeps_the_head():
    before, after, matrices = changed(Reinitialise(kind="reinitialise"))
    for name in matrices:
        assert not torch.equal(before[f"bert.{name}"], after[f"bert.{name}"])
        assert after[f"bert.{name}"].std() == pytest.approx(0.02, rel=0.3)
    assert (after["bert.encoder.layer.0.output.LayerNorm.weight"] == 1).all()
    assert torch.equal(before["classifier.weight"], after["classifier.weight"])


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_reinitialising_draws_every_encoder_anew(model_type):
    """A pooler too, even if the classifier alone has it, as in NomicBERT."""
    model, before = tiny(model_type), tiny(model_type).base_model.state_dict()
    apply_control(Reinitialise(kind="reinitialise"), model, 3)
    after = model.base_model.state_dict()
    assert [name for name in before if torch.equal(before[name], after[name])] == []


def test_noise_has_the_asked_size_relative_to_each_matrix():
    before, after, matrices = changed(Noise(kind="noise", sigma=0.5))
    for name in matrices:
        one, two = before[f"bert.{name}"], after[f"bert.{name}"]
        assert (two - one).std() / one.std() == pytest.approx(0.5, rel=0.2)


def test_noise_of_one_spread_for_all_is_as_large_in_every_matrix():
    model = tiny("bert")
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight.mul_(0.01)
    before = {name: w.detach().clone() for name, w in Units.of(model, "weight").matrices(model).items()}
    pooled = torch.cat([weight.flatten() for weight in before.values()]).double().std().item()
    apply_control(Noise(kind="noise", sigma=0.5, spread="all"), model, 3)
    after = Units.of(model, "weight").matrices(model)
    noise = {name: (after[name].detach() - weight).double().std().item() for name, weight in before.items()}
    for name, size in noise.items():
        assert size == pytest.approx(0.5 * pooled, rel=0.15), name
    everything = torch.cat([(after[name].detach() - weight).flatten() for name, weight in before.items()])
    assert everything.double().std().item() == pytest.approx(0.5 * pooled, rel=0.03)


@pytest.mark.parametrize(
    "control", [Shuffle(kind="shuffle"), Reinitialise(kind="reinitialise"), Noise(kind="noise")]
)
def test_controls_depend_on_the_seed_alone(control):
    _, one, _ = changed(control, seed=3)
    torch.rand(5)
    _, same, _ = changed(control, seed=3)
    _, other, _ = changed(control, seed=4)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_perturbing_swaps_exactly_the_share_and_keeps_the_sparsity(share):
    model = tiny("bert")
    units = Units.of(model, "weight")
    mask = draw(
        Scores.total(units, {n: w.detach().abs() for n, w in units.matrices(model).items()}), sparsity=0.3
    )
    other = perturb(mask, share, seed=1)
    swaps = min(int(share * mask.kept + 0.5), mask.removed)
    assert other.removed == mask.removed
    assert (mask & ~other).kept == (other & ~mask).kept == swaps
    assert perturb(mask, share, seed=1) == other


def test_perturbing_a_full_mask_changes_nothing():
    units = Units.of(tiny("bert"), "head")
    assert perturb(Mask.full(units), 0.5, seed=1) == Mask.full(units)


@pytest.mark.parametrize("across", ["layers", "whole_layers"])
def test_a_single_layer_cannot_be_shuffled(across):
    """ALBERT passes one layer many times: shuffling would leave the model as it is."""
    with pytest.raises(ModelError, match="layers cannot be shuffled: use across: matrices"):
        apply_control(Shuffle(across=across), tiny("albert", inner_group_num=1), 1)


def test_a_model_of_unequal_layers_cannot_be_reinitialised():
    model = tiny("bert")
    small = shrink(model, draw(random_scores(Units.of(model, "head"), 1), 0.4))
    with pytest.raises(ModelError, match="control: a shrunk model whose layers have different sizes"):
        apply_control(Reinitialise(kind="reinitialise"), small, 1)
