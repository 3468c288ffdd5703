"""The algebra of masks, and what they say of themselves."""

import numpy as np
import pytest
import torch
from hypothesis import given

from tests.masks.small import COUNT, booleans, flat, mask_of, masks, small_units
from tests.tiny import tiny
from tombola.errors import MaskMismatch, TombolaError
from tombola.masks import Mask, Scores, Units, draw, fingerprint


@given(booleans)
def test_bits_and_booleans_are_the_same(kept):
    mask = mask_of(kept)
    assert np.array_equal(flat(mask), kept)
    assert (mask.count, mask.kept, mask.removed) == (COUNT, kept.sum(), COUNT - kept.sum())
    assert mask.sparsity == mask.weight_sparsity == (~kept).mean()
    assert mask.parameter_sparsity == (~kept).sum() / 100


@given(booleans, booleans)
def test_algebra_is_that_of_booleans(a, b):
    one, two = mask_of(a), mask_of(b)
    assert np.array_equal(flat(one & two), a & b)
    assert np.array_equal(flat(one | two), a | b)
    assert np.array_equal(flat(one ^ two), a ^ b)
    assert np.array_equal(flat(~one), ~a)
    assert (one == two) == np.array_equal(a, b)


@given(masks, masks)
def test_de_morgan_and_involution(a, b):
    assert ~(a & b) == ~a | ~b
    assert ~(a | b) == ~a & ~b
    assert ~~a == a
    assert a ^ b == (a | b) & ~(a & b)
    assert (~a).kept == a.removed


@given(booleans, booleans)
def test_overlap_is_jaccard(a, b):
    one, two = mask_of(a), mask_of(b)
    overlap = one.overlap(two)
    assert 0.0 <= overlap <= 1.0
    assert overlap == two.overlap(one)
    assert one.overlap(one) == 1.0
    assert overlap == ((a & b).sum() / (a | b).sum() if (a | b).any() else 1.0)


@given(masks, masks)
def test_contains_is_the_order_of_the_algebra(a, b):
    assert a.contains(b) == ((a & b) == b)
    assert a.contains(a & b)
    assert (a | b).contains(b)
    assert a.contains(~Mask.full(small_units()))


@given(booleans)
def test_sparsities_by_place(kept):
    mask = mask_of(kept)
    first, second, pooler = (1 - part.mean() for part in np.split(kept, [15, 33]))
    assert mask.by_layer() == pytest.approx({0: first, 1: second, None: pooler})
    assert mask.by_kind() == pytest.approx({"query": 1 - kept[:33].mean(), "pooler": pooler})
    assert mask.table() == pytest.approx(
        {(0, "query"): first, (1, "query"): second, (None, "pooler"): pooler}
    )


def test_sparsity_counts_units_and_weight_sparsity_all_prunable_weights():
    units = Units.of(tiny("bert"), "head")
    mask = draw(Scores(units, {g.name: torch.arange(4.0) for g in units.groups}), remove=2)
    assert mask.sparsity == 2 / 8
    assert mask.weight_sparsity == 2 * 4 * 4 * 16 / 3840
    assert mask.by_kind() == {"head": 0.25}
    assert (mask.expand().count, mask.expand().removed) == (3840, 512)


def test_overlap_of_different_granularities_is_over_weights():
    model = tiny("bert")
    heads, weights = Units.of(model, "head"), Units.of(model, "weight")
    without_first = Mask.from_bools(heads, {g.name: torch.arange(4) != 0 for g in heads.groups})
    everything = Mask.full(weights)
    assert without_first.overlap(everything) == (3840 - 512) / 3840
    assert everything.contains(without_first)
    assert not without_first.contains(everything)


def test_a_language_models_mask_meets_a_classifiers_without_its_pooler():
    classifier, language_model = (
        Units.of(tiny("bert"), "weight"),
        Units.of(tiny("bert", "masked-lm"), "weight"),
    )
    one = draw(Scores.total(classifier, tiny("bert").base_model.state_dict()), 0.5)
    two = Mask.full(language_model)
    assert one.overlap(two) == one.without("pooler").kept / 3584
    assert two.contains(one)
    with pytest.raises(MaskMismatch, match="pooler"):
        one & two
    assert one.without("pooler") & two == one.without("pooler")


def test_masks_of_other_units_are_not_combined():
    heads, rows = (Mask.full(Units.of(tiny("bert"), name)) for name in ("head", "row"))
    with pytest.raises(MaskMismatch, match="head units of bert"):
        heads & rows
    with pytest.raises(MaskMismatch):
        heads.overlap(Mask.full(Units.of(tiny("roberta"), "head")))
    assert heads != rows


def test_masks_of_other_heads_in_equal_matrices_are_not_combined():
    four, two = (Mask.full(Units.of(tiny("bert", num_attention_heads=heads), "head")) for heads in (4, 2))
    assert four != two
    with pytest.raises(MaskMismatch, match=r"8 head units.*4 head units"):
        four & two


def test_joint_mask_of_heads_and_ffns():
    model = tiny("roberta")
    heads, ffns = Units.of(model, "head"), Units.of(model, "ffn")
    some = Mask.from_bools(heads, {g.name: torch.arange(4) > g.layer for g in heads.groups})
    none = ~Mask.full(ffns)
    joint = some.join(none)
    assert joint.units.granularity == "head+ffn"
    assert (joint.count, joint.removed) == (10, 3 + 2)
    assert joint.removed_weights == some.removed_weights + none.removed_weights == joint.expand().removed
    assert joint.expand() == some.expand() & none.expand()
    assert joint.tensors(model).keys() == some.tensors(model).keys() | none.tensors(model).keys()
    with pytest.raises(MaskMismatch, match="both cover"):
        none.join(Mask.full(Units.of(model, "layer")))


def test_from_bools_takes_every_group_in_its_shape_as_booleans():
    units = Units.of(tiny("bert"), "head")
    good = {g.name: torch.ones(4, dtype=torch.bool) for g in units.groups}
    assert Mask.from_bools(units, good) == Mask.full(units)
    with pytest.raises(TombolaError, match=r"layers\.1\.heads.*None"):
        Mask.from_bools(units, {"layers.0.heads": good["layers.0.heads"]})
    with pytest.raises(TombolaError, match=r"layers\.7\.heads"):
        Mask.from_bools(units, good | {"layers.7.heads": torch.ones(4, dtype=torch.bool)})
    with pytest.raises(TombolaError, match=r"\(3,\)"):
        Mask.from_bools(units, good | {"layers.1.heads": torch.ones(3, dtype=torch.bool)})
    with pytest.raises(TombolaError, match="booleans"):
        Mask.from_bools(units, good | {"layers.1.heads": torch.ones(4)})


# Whether a mask fits a model


def test_a_mask_of_a_classifier_fits_every_version_of_its_base():
    units = Units.of(tiny("bert"), "row")
    nothing = ~Mask.full(units)
    for head in ("base", "masked-lm", "question-answering", "sequence-classification"):
        model = tiny("bert", head)
        nothing.apply(model)
        assert all(not matrix.any() for matrix in Units.of(model, "row").matrices(model).values())


@pytest.mark.parametrize(
    "other",
    [
        {"num_hidden_layers": 3},
        {"num_attention_heads": 2},
        {"intermediate_size": 32},
        {"hidden_size": 32},
    ],
)
def test_a_model_of_another_geometry_is_refused(other):
    mask = Mask.full(Units.of(tiny("bert"), "weight"))
    with pytest.raises(MaskMismatch, match=r"layers 2.*layers"):
        mask.apply(tiny("bert", **other))


def test_a_model_of_another_family_with_the_same_sizes_is_refused():
    for other in ("roberta", "distilbert"):
        with pytest.raises(MaskMismatch, match=f"belongs to bert .* the model is {other}"):
            Mask.full(Units.of(tiny("bert"), "weight")).check(tiny(other))


def test_a_trained_model_passes_with_the_base_it_started_from():
    start, other = tiny("bert"), tiny("bert", seed=1)
    mask = Mask.full(Units.of(start, "weight"))
    trained = tiny("bert", seed=2)
    mask.check(trained)
    mask.check(trained, base=fingerprint(start))
    with pytest.raises(MaskMismatch) as error:
        mask.check(trained, base=fingerprint(other))
    assert mask.base.fingerprint in str(error.value)
    assert fingerprint(other).fingerprint in str(error.value)


def test_a_mask_moves_to_other_weights_of_its_geometry_alone():
    mask = ~Mask.full(Units.of(tiny("bert"), "head"))
    other = tiny("bert", seed=1)
    moved = mask.on(fingerprint(other))
    moved.check(other, fingerprint(other))
    assert moved == mask
    with pytest.raises(
        MaskMismatch, match=r"heads 4.*but the model is .*heads 2"
    ):  # the matrices have equal shapes
        mask.on(fingerprint(tiny("bert", num_attention_heads=2)))


def test_apply_needs_no_gradient_and_keeps_the_dtype():
    model = tiny("bert").to(torch.bfloat16)
    (~Mask.full(Units.of(model, "ffn"))).apply(model)
    down = model.bert.encoder.layer[0].output.dense
    assert down.weight.requires_grad
    assert down.weight.dtype == torch.bfloat16
    assert not down.weight.any()
    assert not down.bias.any()


def test_apply_removes_even_what_is_not_finite():
    model = tiny("bert")
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.weight[0, 0] = float("nan")
    (~Mask.full(Units.of(model, "weight"))).apply(model)
    assert not model.bert.encoder.layer[0].output.dense.weight.any()


def test_units_scores_and_masks_show_in_a_session_what_they_are():
    model = tiny("bert")
    units = Units.of(model, "weight")
    scores = Scores.magnitude(units, model)
    assert repr(units) == f"Units(bert weight: {units.count:,})"
    assert repr(scores) == f"Scores(bert weight: {units.count:,})"
    half = f"{units.count // 2:,} of {units.count:,} kept"
    assert repr(draw(scores, sparsity=0.5)) == f"Mask(bert weight: {half}, sparsity 0.5000)"
