"""Draws inside matrices: rows, N:M groups and blocks are exact everywhere; against a plain sort."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from torch.sparse import _semi_structured_conversions as conversions

from tests.masks.small import follows
from tests.masks.test_draw import by_sorting
from tests.tiny import tiny
from tombola.errors import TombolaError
from tombola.masks import Base, Layout, Mask, Matrix, Scores, Units, draw, removals
from tombola.masks.in_matrices import MatrixSelection
from tombola.masks.patterns import Blocks, NofM, keep_in_groups, parse_pattern
from tombola.shrink.packing import pack, unpack

pytestmark = pytest.mark.portable

SHAPES = {"plain": (6, 16), "stored as inputs by outputs": (32, 4), "wide": (2, 48)}
TRANSPOSED = "stored as inputs by outputs"
COUNT = sum(rows * columns for rows, columns in SHAPES.values())


@cache
def units() -> Units:
    matrices = tuple(
        Matrix(
            name=name,
            layer=place,
            kind="query",
            tensor=f"{name}.weight",
            shape=shape,
            transposed=name == TRANSPOSED,
        )
        for place, (name, shape) in enumerate(SHAPES.items())
    )
    layout = Layout(family="gpt2", matrices=matrices, head_dim=1, parameters=1000)
    return Units.from_layout(layout, "weight", Base(model_type="gpt2", geometry={"layers": 3}))


def scores_of(flat: np.ndarray) -> Scores:
    ends = np.cumsum([rows * columns for rows, columns in SHAPES.values()])[:-1]
    pieces = zip(SHAPES.items(), np.split(flat, ends), strict=True)
    return Scores(
        units(), {name: torch.from_numpy(piece.copy()).reshape(shape) for (name, shape), piece in pieces}
    )


def by_outputs(values: torch.Tensor, name: str) -> np.ndarray:
    return (values.T if name == TRANSPOSED else values).contiguous().numpy()


numbers = st.one_of(
    st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1e-42, 1.0, np.inf]), st.floats(allow_nan=False, width=32)
)
values = nps.arrays(np.float32, COUNT, elements=numbers)
finite = nps.arrays(np.float32, COUNT, elements=st.integers(-9, 9).map(float))
patterns = st.sampled_from(["1:2", "2:4", "1:4", "3:4", "4:8", "7:8", "5:16"])


def sorted_rows(rows: np.ndarray, remove: int) -> np.ndarray:
    return np.stack([by_sorting(row, remove, np.ones(row.size, np.bool_)) for row in rows])


@given(values, patterns)
def test_n_of_m_keeps_the_highest_n_of_every_group_along_the_inputs(flat, text):
    pattern = parse_pattern(text)
    scores = scores_of(flat)
    mask = draw(scores, pattern=text)
    for name in SHAPES:
        own = by_outputs(scores[name], name).reshape(-1, pattern.of)
        kept = by_outputs(mask[name], name).reshape(-1, pattern.of)
        assert (kept.sum(axis=1) == pattern.keep).all()
        assert np.array_equal(kept, sorted_rows(own, pattern.of - pattern.keep))
    assert mask.sparsity == pattern.sparsity


@given(values, st.floats(0, 1))
def test_row_scope_removes_the_same_share_of_every_output_row(flat, sparsity):
    scores = scores_of(flat)
    mask = draw(scores, sparsity, scope="row")
    for name in SHAPES:
        own, kept = by_outputs(scores[name], name), by_outputs(mask[name], name)
        assert np.array_equal(kept, sorted_rows(own, removals(sparsity, own.shape[1])))


@given(finite, st.floats(0, 1), st.sampled_from(["global", "local", "row"]))
def test_blocks_stay_or_go_as_a_whole_by_the_sum_of_their_scores(flat, sparsity, scope):
    scores = scores_of(flat)
    mask = draw(scores, sparsity, scope=scope, pattern="2x8")
    blocks = Blocks(2, 8)
    totals, kept = {}, {}
    for name in SHAPES:
        assert follows(torch.from_numpy(by_outputs(mask[name], name)), blocks)
        totals[name] = blocks.totals(torch.from_numpy(by_outputs(scores[name], name))).numpy()
        kept[name] = by_outputs(mask[name], name)[::2, ::8]
    if scope == "global":
        together = np.concatenate([one.reshape(-1) for one in totals.values()])
        expected = by_sorting(together, removals(sparsity, together.size), np.ones(together.size, np.bool_))
        assert np.array_equal(np.concatenate([one.reshape(-1) for one in kept.values()]), expected)
    for name, own in totals.items() if scope != "global" else ():
        rows = own.reshape(1, -1) if scope == "local" else own
        expected = sorted_rows(rows, removals(sparsity, rows.shape[1]))
        assert np.array_equal(kept[name].reshape(rows.shape), expected)


@given(values, values, st.floats(0, 1), st.floats(0, 1))
def test_rows_drawn_within_a_mask_stay_inside_it(before, after, low, high):
    low, high = min(low, high), max(low, high)
    sparse = draw(scores_of(before), low, scope="row")
    sparser = draw(scores_of(after), high, scope="row", within=sparse)
    assert sparse.contains(sparser)
    for name in SHAPES:
        kept = by_outputs(sparser[name], name)
        assert (kept.sum(axis=1) == kept.shape[1] - removals(high, kept.shape[1])).all()


@given(values, values)
def test_a_sparser_pattern_can_be_drawn_within_a_denser_one(before, after):
    half = draw(scores_of(before), pattern="2:4")
    quarter = draw(scores_of(after), pattern="1:4", within=half)
    assert half.contains(quarter)
    assert quarter.sparsity == 0.75
    with pytest.raises(TombolaError, match="3 are removed already"):
        draw(scores_of(after), pattern="2:4", within=quarter)


@given(finite, finite)
def test_blocks_can_be_drawn_within_blocks_and_not_within_parts_of_them(before, after):
    some = draw(scores_of(before), 0.25, pattern="2x8")
    more = draw(scores_of(after), 0.5, pattern="2x8", within=some)
    assert some.contains(more)
    with pytest.raises(TombolaError, match="parts of blocks"):
        draw(scores_of(after), 0.5, pattern="2x8", within=draw(scores_of(before), pattern="2:4"))


@given(values)
def test_what_is_protected_stays(flat):
    mask = draw(scores_of(-flat), pattern="1:4")
    assert draw(scores_of(flat), pattern="2:4", protect=mask).contains(mask)
    assert draw(scores_of(flat), 0.5, scope="row", protect=mask).contains(mask)
    with pytest.raises(TombolaError, match="may be removed"):
        draw(scores_of(flat), pattern="1:4", protect=draw(scores_of(flat), pattern="3:4"))
    with pytest.raises(TombolaError, match="removed protected"):
        draw(scores_of(flat), pattern="1:4", within=mask, protect=~mask)


@given(values, patterns)
def test_one_matrix_alone_is_drawn_as_among_others(flat, text):
    scores = scores_of(flat)
    pattern = parse_pattern(text)
    for selection, mask in (
        (MatrixSelection(pattern.sparsity, pattern=pattern), draw(scores, pattern=text)),
        (MatrixSelection(0.3, "row"), draw(scores, 0.3, scope="row")),
        (MatrixSelection(0.3, "local"), draw(scores, 0.3, scope="local")),
    ):
        own = torch.from_numpy(by_outputs(scores["plain"], "plain"))
        assert torch.equal(selection.keep(own), mask["plain"])


def test_wide_groups_agree_with_narrow_ones():
    flat = np.random.default_rng(0).integers(0, 5, (64, 96)).astype(np.float32)
    for keep, of in ((3, 16), (9, 32), (40, 48)):
        kept = keep_in_groups(flat, NofM(keep, of)).reshape(-1, of)
        assert np.array_equal(kept, sorted_rows(flat.reshape(-1, of), of - keep))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("4:4", "at least one weight"),
        ("0:4", "at least one"),
        ("1x1", "at least two weights"),
        ("0x8", "at least two weights"),
        ("half", "2:4"),
        ("2:4:8", "2:4"),
    ],
)
def test_other_words_are_no_patterns(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_pattern(text)
    with pytest.raises(TombolaError, match=reason):
        draw(scores_of(np.zeros(COUNT, np.float32)), pattern=text)


def test_what_a_pattern_cannot_be_drawn_from_is_refused():
    scores = scores_of(np.zeros(COUNT, np.float32))
    with pytest.raises(TombolaError, match="plain has 16 inputs, not a multiple of 5"):
        draw(scores, pattern="2:5")
    with pytest.raises(TombolaError, match="not multiples of the block's sides"):
        draw(scores, 0.5, pattern="4x4")
    with pytest.raises(TombolaError, match=r"removes 0\.5 of the weights"):
        draw(scores, 0.3, pattern="2:4")
    with pytest.raises(TombolaError, match="give a sparsity"):
        draw(scores, remove=3, pattern="2x8")
    with pytest.raises(TombolaError, match="give a sparsity"):
        draw(scores, remove=3, scope="row")
    with pytest.raises(TombolaError, match="between 0 and 1"):
        draw(scores, 1.5, scope="row")
    with pytest.raises(TombolaError, match="NaN"):
        draw(scores_of(np.full(COUNT, np.nan, np.float32)), pattern="2:4")
    with pytest.raises(TombolaError, match="drawn one by one"):
        MatrixSelection(0.5, "global")
    heads = Units.of(tiny("bert"), "head")
    with pytest.raises(TombolaError, match="for single weights"):
        draw(Scores(heads, {group.name: torch.zeros(group.shape) for group in heads.groups}), pattern="2:4")
    biased = Units.of(tiny("bert"), "weight", biases=True)
    with pytest.raises(TombolaError, match="applies to matrices"):
        draw(Scores(biased, {group.name: torch.zeros(group.shape) for group in biased.groups}), pattern="2:4")


# What becomes of a drawn pattern


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "bert"])
def test_a_pattern_is_there_as_zeros_and_as_bits(tmp_path, model_type):
    model = tiny(model_type)
    weights = Units.of(model, "weight")
    mask = draw(Scores.magnitude(weights, model), pattern="2:4")
    mask.save(tmp_path / "mask.safetensors")
    assert Mask.load(tmp_path / "mask.safetensors") == mask
    mask.apply(model)
    pack(model, mask, tmp_path / "packed.safetensors")
    for one in (model, unpack(tmp_path / "packed.safetensors")):
        for matrix in weights.layout.matrices:
            stored = one.base_model.get_parameter(matrix.tensor).detach()
            by_output = stored.T if matrix.transposed else stored
            assert (by_output.reshape(-1, 4).ne(0).sum(dim=1) == 2).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_torch_takes_a_two_of_four_mask_as_semi_structured(dtype):
    """The conversion behind `to_sparse_semi_structured` keeps two of four: only such matrices come back whole."""
    weight = torch.randn(64, 128, generator=torch.Generator().manual_seed(0)).to(dtype)
    for pattern, whole in (("2:4", True), ("1:4", True), ("4:8", False)):
        kept = MatrixSelection(0.5, pattern=parse_pattern(pattern)).keep(weight.abs())
        sparse = weight * kept
        values, places = conversions.sparse_semi_structured_from_dense_cutlass(sparse)
        assert values.shape == (64, 64)
        back = conversions.sparse_semi_structured_to_dense_cutlass(values, places)
        assert torch.equal(back, sparse) is whole
