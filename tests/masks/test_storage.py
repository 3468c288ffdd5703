"""Files: small, complete, and refused when anything is wrong with them."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from safetensors import safe_open
from safetensors.numpy import save_file
from transformers import AutoModelForSequenceClassification, BertConfig

from tests.masks.small import masks, scores_of, small_units, values
from tests.tiny import MODEL_TYPES, tiny
from tombola.errors import DamagedArtefact, TombolaError
from tombola.masks import Mask, Scores, Units, coding, draw


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@pytest.fixture
def heads(tmp_path):
    units = Units.of(tiny("bert"), "head")
    mask = draw(Scores(units, {g.name: torch.arange(4.0) for g in units.groups}), 0.5)
    mask.save(tmp_path / "mask.safetensors", task="sst2")
    return tmp_path / "mask.safetensors"


def rewrite(path, arrays=None, metadata=None):
    """Write the file again with other arrays or another header."""
    with safe_open(path, framework="numpy") as file:
        old_metadata = file.metadata()
        old_arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(arrays or old_arrays, path, old_metadata if metadata is None else metadata)


def header_of(path):
    with safe_open(path, framework="numpy") as file:
        return json.loads(file.metadata()["tombola"])


@given(masks)
def test_mask_comes_back_bit_for_bit(folder, mask):
    mask.save(folder / "mask.safetensors")
    loaded = Mask.load(folder / "mask.safetensors")
    assert loaded == mask
    assert loaded.units == mask.units
    assert list(loaded) == list(mask)


@given(values)
def test_scores_come_back_bit_for_bit(folder, values):
    scores = scores_of(values)
    scores.save(folder / "scores.safetensors")
    loaded = Scores.load(folder / "scores.safetensors")
    assert loaded.units == scores.units
    assert all(torch.equal(loaded[name], scores[name]) for name in scores)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("granularity", ["weight", "head", "column"])
def test_a_loaded_mask_does_what_the_saved_one_did(tmp_path, model_type, granularity):
    model = tiny(model_type)
    units = Units.of(model, granularity)
    mask = draw(Scores.total(units, {n: m.abs() for n, m in units.matrices(model).items()}), 0.5)
    mask.save(tmp_path / "mask.safetensors")
    loaded = Mask.load(tmp_path / "mask.safetensors")
    assert loaded.units == units
    kept, again = mask.tensors(model), loaded.tensors(model)
    assert all(torch.equal(kept[name], again[name]) for name in kept | again)


def test_joint_masks_and_metadata_come_back(tmp_path):
    model = tiny("bert")
    joint = Mask.full(Units.of(model, "head")).join(~Mask.full(Units.of(model, "ffn")))
    joint.save(tmp_path / "mask.safetensors", task="sst2", seed="3")
    loaded = Mask.load(tmp_path / "mask.safetensors")
    assert loaded == joint
    assert loaded.metadata == {"task": "sst2", "seed": "3"}
    loaded.save(tmp_path / "again.safetensors", seed="4")
    assert Mask.load(tmp_path / "again.safetensors").metadata == {"task": "sst2", "seed": "4"}


@pytest.mark.parametrize(("sparsity", "megabytes"), [(0.5, 10.8), (0.7, 9.9), (0.9, 5.3)])
def test_bert_base_fits_in_little_more_than_its_entropy(tmp_path, sparsity, megabytes):
    with torch.device("meta"):
        model = AutoModelForSequenceClassification.from_config(BertConfig())
    units = Units.of(model, "weight")
    random, threshold = np.random.default_rng(0), round(sparsity * 2**16)
    mask = Mask(
        units,
        {
            g.name: np.packbits(random.integers(0, 2**16, g.count, np.uint16) >= threshold)
            for g in units.groups
        },
    )
    mask.save(tmp_path / "mask.safetensors")
    assert (tmp_path / "mask.safetensors").stat().st_size <= megabytes * 1e6
    loaded = Mask.load(tmp_path / "mask.safetensors")
    assert loaded == mask
    assert loaded.count == 85_524_480
    assert loaded.sparsity == pytest.approx(sparsity, abs=1e-3)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TombolaError, match=r"no mask file at .*absent\.safetensors"):
        Mask.load(tmp_path / "absent.safetensors")


@pytest.mark.parametrize("content", [b"", b"not a safetensors file at all", b"\xff" * 64])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "mask").write_bytes(content)
    with pytest.raises(DamagedArtefact, match="safetensors"):
        Mask.load(tmp_path / "mask")


def test_a_truncated_file_is_refused(heads):
    heads.write_bytes(heads.read_bytes()[:-1])
    with pytest.raises(DamagedArtefact):
        Mask.load(heads)


def test_one_flipped_bit_is_refused(heads):
    content = bytearray(heads.read_bytes())
    content[-1] ^= 0x80
    heads.write_bytes(content)
    with pytest.raises(DamagedArtefact, match="checksum"):
        Mask.load(heads)


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path):
    save_file({"weight": np.zeros(3, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(TombolaError, match="not a mask written by Tombola"):
        Mask.load(tmp_path / "model.safetensors")


def test_scores_are_no_mask_and_a_mask_no_scores(heads, tmp_path):
    scores_of(np.zeros(42, np.float32)).save(tmp_path / "scores.safetensors")
    with pytest.raises(TombolaError, match="'scores', not 'mask'"):
        Mask.load(tmp_path / "scores.safetensors")
    with pytest.raises(TombolaError, match="'mask', not 'scores'"):
        Scores.load(heads)


def test_a_group_too_few_is_refused(heads):
    rewrite(heads, arrays={"layers.0.heads": np.zeros(1, np.uint8)})
    with pytest.raises(DamagedArtefact, match="checksum"):
        Mask.load(heads)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 1}, "version"),
        ({"granularity": "heads"}, "granularity"),
        ({"surprise": 1}, "surprise"),
        ({"base": {}}, "base.model_type"),
        ({"sha256": "0"}, "checksum"),
    ],
)
def test_a_changed_header_is_refused(heads, change, reason):
    rewrite(heads, metadata={"tombola": json.dumps(header_of(heads) | change)})
    with pytest.raises(DamagedArtefact, match=reason):
        Mask.load(heads)


@pytest.mark.parametrize(
    "change",
    [{"shape": [0, 16]}, {"shape": [16]}, {"of": 0}, {"kind": "keys"}, {"layer": 5}, {"kind": "pooler"}],
)
def test_a_header_with_an_impossible_matrix_is_refused(heads, change):
    header = header_of(heads)
    header["layout"]["matrices"][1] |= change
    rewrite(heads, metadata={"tombola": json.dumps(header)})
    with pytest.raises(DamagedArtefact):
        Mask.load(heads)


def test_a_header_that_is_no_json_is_refused(heads):
    rewrite(heads, metadata={"tombola": "{"})
    with pytest.raises(DamagedArtefact, match="header"):
        Mask.load(heads)


@pytest.mark.parametrize("bits", [np.array([0xF1], np.uint8), np.zeros(2, np.uint8), np.zeros(0, np.uint8)])
def test_bits_that_no_unit_owns_are_refused(tmp_path, monkeypatch, bits):
    units = Units.of(tiny("bert"), "head")
    plain = coding.encode(bits, 8 * len(bits))[1]
    monkeypatch.setattr(coding, "encode", lambda bits, count: ("bytes", plain))
    Mask.full(units).save(tmp_path / "mask.safetensors")
    with pytest.raises(DamagedArtefact, match=r"layers\.0\.heads"):
        Mask.load(tmp_path / "mask.safetensors")


@pytest.mark.parametrize("codings", [{}, {"layers.0.heads": "bytes"}, {"layers.0.heads": "words"}])
def test_a_mask_says_how_each_of_its_groups_is_coded(heads, codings):
    rewrite(heads, metadata={"tombola": json.dumps(header_of(heads) | {"codings": codings, "digest": ""})})
    with pytest.raises(DamagedArtefact, match=r"layers\.[01]\.heads"):
        Mask.load(heads)


def test_an_unwritable_place_is_named(tmp_path):
    with pytest.raises(TombolaError, match="could not write the mask"):
        Mask.full(small_units()).save(tmp_path / "no" / "such" / "folder" / "mask.safetensors")


def test_every_flipped_bit_of_a_mask_is_noticed_header_and_padding_included(heads):
    whole, mask = heads.read_bytes(), Mask.load(heads)
    harmless = 0
    for place in range(len(whole)):
        heads.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert Mask.load(heads) == mask
            harmless += 1
        except TombolaError:
            pass
    assert harmless <= 8  # padding behind the header, if any
