"""Drawing is exact: so many units, the lowest, the later of equals first; against a plain sort."""

from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.masks.small import COUNT, SHAPES, booleans, flat, mask_of, masks, scores_of, small_units, values
from tests.tiny import tiny
from tombola.errors import TombolaError, UnknownName
from tombola.masks import Mask, Scores, Units, draw, removals, select
from tombola.masks.drawing import random_like

pytestmark = pytest.mark.portable

sparsities = st.floats(0, 1)


def by_sorting(scores: np.ndarray, remove: int, may_go: np.ndarray) -> np.ndarray:
    order = sorted(np.flatnonzero(may_go), key=lambda place: (scores[place], -place))
    kept = np.ones(len(scores), np.bool_)
    kept[order[:remove]] = False
    return kept


@given(values, st.integers(0, COUNT), st.sampled_from([16, 1 << 17]))
def test_agrees_with_a_stable_sort_at_every_count(scores, remove, chunk):
    with mock.patch.object(select, "CHUNK", chunk):
        mask = draw(scores_of(scores), remove=remove)
    assert np.array_equal(flat(mask), by_sorting(scores, remove, np.ones(COUNT, np.bool_)))
    assert mask.removed == remove


@given(values, sparsities)
def test_sparsity_is_exact_and_repeatable(scores, sparsity):
    mask = draw(scores_of(scores), sparsity)
    assert mask.removed == int(np.floor(sparsity * COUNT + 0.5))
    assert mask == draw(scores_of(scores), sparsity)


@given(values, sparsities)
def test_local_removes_the_same_share_of_every_group(scores, sparsity):
    mask = draw(scores_of(scores), sparsity, scope="local")
    start = 0
    for name, (rows, columns) in SHAPES.items():
        own = scores[start : start + rows * columns]
        expected = by_sorting(own, removals(sparsity, own.size), np.ones(own.size, np.bool_))
        assert np.array_equal(mask.bools(name).reshape(-1).numpy(), expected)
        start += own.size


@given(values, booleans, booleans, st.data(), st.sampled_from([16, 1 << 17]))
def test_within_and_protect_agree_with_a_sort_of_what_may_go(scores, left, guarded, data, chunk):
    guarded = guarded & left
    gone, may_go = int((~left).sum()), left & ~guarded
    remove = data.draw(st.integers(gone, gone + int(may_go.sum())))
    with mock.patch.object(select, "CHUNK", chunk):
        mask = draw(scores_of(scores), remove=remove, within=mask_of(left), protect=mask_of(guarded))
    assert np.array_equal(flat(mask), by_sorting(scores, remove - gone, may_go) & left)
    assert mask.removed == remove
    assert mask.contains(mask_of(guarded))


@given(values, values, sparsities, sparsities, st.sampled_from(["global", "local"]))
def test_masks_drawn_within_one_another_are_nested(before, after, low, high, scope):
    low, high = min(low, high), max(low, high)
    sparse = draw(scores_of(before), low, scope=scope)
    sparser = draw(scores_of(after), high, scope=scope, within=sparse)
    assert sparse.contains(sparser)
    if scope == "global":
        assert sparser.removed == removals(high, COUNT)


@given(values, sparsities, sparsities)
def test_masks_of_the_same_scores_are_nested(scores, low, high):
    low, high = min(low, high), max(low, high)
    assert draw(scores_of(scores), low).contains(draw(scores_of(scores), high))


@given(masks)
def test_all_that_may_go_can_go(mask):
    equal = scores_of(np.zeros(COUNT, np.float32))
    assert draw(equal, remove=mask.removed, protect=mask) == mask
    assert draw(equal, remove=mask.removed, within=mask) == mask
    if mask.kept:
        with pytest.raises(TombolaError, match=f"only {mask.removed} more may be"):
            draw(equal, sparsity=1.0, protect=mask)


def test_half_a_unit_counts_as_one():
    assert [removals(0.5, count) for count in (1, 2, 3, 5, 7)] == [1, 1, 2, 3, 4]
    assert removals(0.7, 85_524_480) == 59_867_136
    assert removals(0.35, 90) == removals(0.1 + 0.25, 90) == 32
    assert removals(0.1 + 0.2, 15) == removals(1 - 0.7, 15) == 5


def test_zeros_of_both_signs_are_equal_and_infinities_are_the_ends():
    scores = np.full(COUNT, 1.0, np.float32)
    scores[[3, 20]] = -0.0
    scores[[10, 30]] = 0.0
    scores[5], scores[6] = -np.inf, np.inf
    gone = [np.flatnonzero(~flat(draw(scores_of(scores), remove=n))).tolist() for n in range(1, 6)]
    assert gone == [[5], [5, 30], [5, 20, 30], [5, 10, 20, 30], [3, 5, 10, 20, 30]]
    assert flat(draw(scores_of(scores), remove=COUNT - 1))[6]


def test_of_equal_scores_the_later_go_first():
    mask = draw(scores_of(np.zeros(COUNT, np.float32)), remove=10)
    assert not mask.bools("pooler").any()
    assert mask.bools("second").reshape(-1).tolist() == [True] * 17 + [False]
    assert mask.bools("first").all()


def test_many_scores_of_two_layers_agree_with_torch():
    """A model with groups larger than a chunk, ties by rounding to bfloat16."""
    model = tiny("bert", hidden_size=256, intermediate_size=1024)
    units = Units.of(model, "weight")
    weights = {name: matrix.abs().bfloat16().float() for name, matrix in units.matrices(model).items()}
    scores = Scores.total(units, weights)
    assert max(group.count for group in units.groups) > select.CHUNK
    remove = removals(0.7, units.count)
    flat_scores = torch.cat([score.reshape(-1) for score in scores.values()])
    order = torch.sort(flat_scores.flip(0), stable=True).indices
    expected = torch.ones(units.count, dtype=torch.bool)
    expected[units.count - 1 - order[:remove]] = False
    drawn = draw(scores, 0.7)
    assert torch.equal(torch.cat([kept.reshape(-1) for kept in drawn.values()]), expected)


@pytest.mark.parametrize("sparsity", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("place", [0, 20, COUNT - 1])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_nan_is_refused(sparsity, place, sign):
    scores = np.zeros(COUNT, np.float32)
    scores[place] = np.copysign(np.nan, sign)
    with pytest.raises(TombolaError, match="NaN"):
        draw(scores_of(scores), sparsity)


def test_what_cannot_be_drawn_is_refused():
    scores = scores_of(np.arange(COUNT, dtype=np.float32))
    half = draw(scores, 0.5)
    with pytest.raises(TombolaError, match="either"):
        draw(scores)
    with pytest.raises(TombolaError, match="either"):
        draw(scores, 0.5, remove=3)
    with pytest.raises(TombolaError, match="between 0 and 1"):
        draw(scores, 70)
    with pytest.raises(TombolaError, match="between 0 and 1"):
        draw(scores, float("nan"))
    with pytest.raises(UnknownName, match="global"):
        draw(scores, 0.5, scope="globle")
    with pytest.raises(UnknownName, match="global"):
        draw(scores, scope="globle", pattern="2:4")
    with pytest.raises(TombolaError, match="local"):
        draw(scores, remove=3, scope="local")
    with pytest.raises(TombolaError, match="21 are already removed"):
        draw(scores, 0.25, within=half)
    with pytest.raises(TombolaError, match="protected"):
        draw(scores, 0.75, within=half, protect=~half)
    with pytest.raises(TombolaError, match=f"{COUNT + 1} units"):
        draw(scores, remove=COUNT + 1)
    with pytest.raises(TombolaError, match="-1 units"):
        draw(scores, remove=-1)
    with pytest.raises(TombolaError, match="same units"):
        draw(scores, 0.75, within=Mask.full(Units.of(tiny("bert"), "weight")))


# Scores


def test_scores_need_every_group_in_its_shape():
    with pytest.raises(TombolaError, match="'pooler' has shape None"):
        Scores(
            small_units(), {name: torch.zeros(shape) for name, shape in SHAPES.items() if name != "pooler"}
        )
    with pytest.raises(TombolaError, match=r"'first' has shape \(5, 3\)"):
        Scores(small_units(), {name: torch.zeros(shape).T for name, shape in SHAPES.items()})


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "modernbert", "qwen3"])
@pytest.mark.parametrize("granularity", ["neuron", "head", "ffn", "layer", "row", "column"])
def test_total_is_the_sum_over_what_a_unit_removes(model_type, granularity):
    model = tiny(model_type)
    units = Units.of(model, granularity)
    magnitudes = {name: matrix.detach().abs() for name, matrix in units.matrices(model).items()}
    scores = Scores.total(units, magnitudes)
    for group in units.groups[:3]:
        for place in {0, group.count - 1}:
            kept = {g.name: torch.ones(g.shape, dtype=torch.bool) for g in units.groups}
            kept[group.name][place] = False
            removed = Mask.from_bools(units, kept).tensors(model)
            lost = sum(magnitudes[name][~own].sum() for name, own in removed.items() if name in magnitudes)
            torch.testing.assert_close(scores[group.name][place], lost)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("granularity", ["neuron", "head", "ffn", "row"])
def test_sixteen_bit_weights_are_added_up_in_32_bits(granularity, dtype):
    half, full = tiny("bert").to(dtype), tiny("bert").to(dtype).float()
    found, expected = (Scores.magnitude(Units.of(model, granularity), model) for model in (half, full))
    for name in expected:
        assert torch.equal(found[name], expected[name])


def test_drawing_by_magnitude_needs_no_copy_and_equals_drawing_from_absolute_values():
    model = tiny("bert")
    units = Units.of(model, "weight")
    lazy = Scores.magnitude(units, model)
    assert all(
        lazy.stored[group.name].data_ptr() == units.matrices(model)[group.parts[0].tensor].data_ptr()
        for group in units.groups
    )
    plain = Scores(units, {name: lazy[name].clone() for name in units.by_name})
    within = draw(plain, sparsity=0.2)
    for scope in ("global", "local"):
        assert draw(lazy, sparsity=0.6, scope=scope) == draw(plain, sparsity=0.6, scope=scope)
    assert draw(lazy, sparsity=0.6, within=within) == draw(plain, sparsity=0.6, within=within)


@given(booleans, st.integers(0, 99))
def test_a_random_mask_of_a_masks_size_removes_as_many_and_depends_on_the_seed_alone(kept, seed):
    mask = mask_of(kept)
    found = random_like(mask, seed)
    assert found.units.same_as(mask.units)
    assert found.removed == mask.removed
    assert found == random_like(mask, seed)


def test_a_random_mask_has_the_counts_of_every_kind_and_a_head_in_every_layer():
    units = Units.of(tiny("bert", num_hidden_layers=4, num_attention_heads=4), "head+ffn")
    heads = [group.name for group in units.groups if group.kind == "head"]
    kept = {group.name: torch.ones(group.shape, dtype=torch.bool) for group in units.groups}
    for name in heads:
        kept[name][1:] = False
    kept["layers.0.ffn"][:] = False
    mask = Mask.from_bools(units, kept)
    found = [random_like(mask, seed) for seed in range(20)]
    for one in found:
        assert [int(one[name].sum()) for name in heads] == [1, 1, 1, 1]
        assert sum(int(one[group.name].sum()) for group in units.groups if group.kind == "ffn") == 3
    assert len({one.bits["layers.0.heads"].tobytes() for one in found}) == 4
    emptied = Mask.from_bools(units, {**kept, heads[0]: torch.zeros(4, dtype=torch.bool)})
    fewest = [min(int(random_like(emptied, seed)[name].sum()) for name in heads) for seed in range(20)]
    assert 0 in fewest  # a mask that empties a layer is compared with masks that may do so
    assert all(random_like(emptied, seed).removed == emptied.removed for seed in range(20))
