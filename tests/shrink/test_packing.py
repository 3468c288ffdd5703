import random
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import PreTrainedModel

from tests.shrink.masks import half
from tests.tiny import tiny, token_ids
from tombola.errors import DamagedArtefact, TombolaError
from tombola.masks import Mask, Scores, Units, draw
from tombola.shrink import export_onnx, onnx, pack, packing, shrink, unpack

BROAD = {"hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 4}


def magnitude(model: PreTrainedModel, sparsity: float) -> Mask:
    units = Units.of(model, "weight")
    return draw(
        Scores.total(units, {n: w.detach().abs() for n, w in units.matrices(model).items()}), sparsity
    )


def assert_unpacks(model: PreTrainedModel, mask: Mask, path: Path) -> None:
    masked = deepcopy(model)
    mask.apply(masked)
    pack(model, mask, path)
    unpacked = unpack(path)
    assert type(unpacked) is type(model)
    assert unpacked.dtype == model.dtype
    expected, actual = masked.state_dict(), unpacked.state_dict()
    assert expected.keys() == actual.keys()
    assert all(torch.equal(tensor, actual[name]) for name, tensor in expected.items())
    with torch.no_grad():
        assert torch.equal(unpacked(token_ids())[0], masked(token_ids())[0])


@pytest.mark.parametrize(
    ("model_type", "head"), [("bert", "base"), ("bert", "masked-lm"), ("gpt2", "causal-lm")]
)
@pytest.mark.parametrize("sparsity", [0.0, 0.01, 0.7, 1.0])
def test_unpacks_bit_equal(model_type: str, head: str, sparsity: float, tmp_path: Path) -> None:
    model = tiny(model_type, head)
    assert_unpacks(model, magnitude(model, sparsity), tmp_path / "packed.safetensors")


def test_unpacks_in_the_models_own_dtype(tmp_path: Path) -> None:
    """Whatever its config says: that of a file in 16 bits does, after `model.float()`."""
    model = tiny("llama", "causal-lm", dtype="bfloat16").float()
    assert model.config.dtype == torch.bfloat16
    assert_unpacks(model, magnitude(model, 0.5), tmp_path / "packed.safetensors")


@pytest.mark.parametrize("granularity", ["row", "column", "head", "layer"])
def test_any_granularity(granularity: str, tmp_path: Path) -> None:
    model = tiny("bert")
    assert_unpacks(model, half(model, granularity), tmp_path / "packed.safetensors")


def test_a_shrunk_model_packs(tmp_path: Path) -> None:
    model = tiny("bert")
    model = shrink(model, half(model, "head+neuron"))
    assert_unpacks(model, magnitude(model, 0.5), tmp_path / "packed.safetensors")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_model_of_mostly_matrices_is_over_two_and_a_half_times_smaller(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    model = tiny("bert", **BROAD).to(dtype)
    model.save_pretrained(tmp_path)
    pack(model, magnitude(model, 0.7), tmp_path / "packed.safetensors")
    dense, packed = ((tmp_path / name).stat().st_size for name in ("model.safetensors", "packed.safetensors"))
    assert dense / packed > 2.5


def test_what_would_grow_is_not_packed(tmp_path: Path) -> None:
    model = tiny("bert")
    pack(model, magnitude(model, 0.01), tmp_path / "packed.safetensors")
    with safe_open(tmp_path / "packed.safetensors", framework="pt") as file:
        assert not [name for name in file.keys() if name.endswith(".bits")]  # noqa: SIM118


@pytest.mark.parametrize("suffix", ["values", "bits"])
def test_a_damaged_file_is_refused(suffix: str, tmp_path: Path) -> None:
    model, path = tiny("bert"), tmp_path / "packed.safetensors"
    pack(model, magnitude(model, 0.7), path)
    with safe_open(path, framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    name = next(name for name in tensors if name.endswith(suffix))
    tensors[name] = tensors[name][:-1].clone()
    save_file(tensors, path, metadata)
    with pytest.raises(DamagedArtefact, match="does not match its checksum"):
        unpack(path)
    header = packing.PackedHeader.model_validate_json(metadata["tombola"])
    forged = header.model_copy(update={"digest": packing._digest(header, tensors)})
    save_file(tensors, path, {**metadata, "tombola": forged.model_dump_json()})
    with pytest.raises(DamagedArtefact, match="bitmap"):
        unpack(path)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    model, path, rng = tiny("bert"), tmp_path / "packed.safetensors", random.Random(0)
    pack(model, magnitude(model, 0.7), path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    whole = path.read_bytes()
    for _ in range(60):
        place = rng.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1 :])
        with pytest.raises(TombolaError, match=path.name):
            unpack(path)


@pytest.mark.parametrize("name", ["folder.onnx", "file/model.onnx"])
def test_a_place_that_is_no_file_is_named_before_the_work(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder.onnx").mkdir()
    (tmp_path / "file").write_text("")
    model, place = tiny("bert"), tmp_path / name
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(onnx, "require_packages", lambda: None)
    monkeypatch.setattr(onnx, "write_onnx", lambda *_, **__: pytest.fail("it was exported first"))
    for write in (lambda: pack(model, magnitude(model, 0.5), place), lambda: export_onnx(model, place)):
        with pytest.raises(OSError, match=r"folder|file") as caught:
            write()
        assert Path(str(caught.value.filename)) in (place, place.parent)
    assert sorted(tmp_path.iterdir()) == before


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TombolaError, match="no packed model"):
        unpack(tmp_path / "none")
    (tmp_path / "text").write_text("no tensors here")
    with pytest.raises(DamagedArtefact, match="not a readable safetensors"):
        unpack(tmp_path / "text")
    save_file({"weight": torch.zeros(1)}, tmp_path / "other")
    with pytest.raises(TombolaError, match="not a packed model"):
        unpack(tmp_path / "other")


def test_a_mask_of_head_and_biases_is_packed_too(tmp_path: Path) -> None:
    model = tiny("bert", num_labels=3, **BROAD)
    units = Units.of(model, "weight", classifier=True, biases=True, layers=[0, 2])
    assert_unpacks(
        model, draw(Scores.magnitude(units, model), 0.7, scope="local"), tmp_path / "packed.safetensors"
    )
    with safe_open(tmp_path / "packed.safetensors", "pt") as file:
        assert "classifier.weight.bits" in file.keys()  # noqa: SIM118
