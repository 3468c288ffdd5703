import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from tests.shrink.masks import half
from tests.tiny import MODEL_TYPES, tiny
from tombola.errors import TombolaError
from tombola.shrink import export_onnx, onnx, shrink


def test_a_shrunk_model_runs_in_onnxruntime_as_in_pytorch(tmp_path: Path) -> None:
    model = tiny("bert")
    shrunk = shrink(model, half(model, "head+neuron", empty=0))
    export = export_onnx(shrunk, tmp_path / "model.onnx")
    assert export.max_difference < 1e-5
    assert export.bytes == export.path.stat().st_size
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(export.path, providers=["CPUExecutionProvider"])
    ids = torch.randint(5, 60, (7, 11))
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }
    (logits,) = session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})
    with torch.no_grad():
        np.testing.assert_allclose(logits, shrunk(**inputs).logits.numpy(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_family_shrunk(model_type: str, tmp_path: Path) -> None:
    model = tiny(model_type)
    shrunk = shrink(model, half(model, "head+neuron", empty=0))
    assert export_onnx(shrunk, tmp_path / "model.onnx").max_difference < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model_type", "head"),
    [("roberta", "masked-lm"), ("bert", "question-answering"), ("llama", "causal-lm"), ("bert", "base")],
)
def test_other_heads_dense(model_type: str, head: str, tmp_path: Path) -> None:
    assert export_onnx(tiny(model_type, head), tmp_path / "model.onnx").max_difference < 1e-5


@pytest.mark.slow
def test_int8_from_a_folder_in_half_precision(tmp_path: Path) -> None:
    wide = {"hidden_size": 128, "intermediate_size": 512, "num_attention_heads": 4}
    tiny("bert", **wide).to(torch.bfloat16).save_pretrained(tmp_path / "folder")
    export = export_onnx(tmp_path / "folder", tmp_path / "model.onnx", int8=True)
    assert export.int8 is not None
    assert export.int8.path == tmp_path / "model.int8.onnx"
    assert export.int8.bytes == export.int8.path.stat().st_size < export.bytes / 2
    assert export.int8.max_difference > export.max_difference
    assert export.int8.agreement > 0.8


def test_a_model_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("distilbert")

    def wrong(session: object, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"logits": torch.full((len(inputs["input_ids"]), 2), float("nan"))}

    monkeypatch.setattr(onnx, "_write", lambda model, path, large: path.touch())
    monkeypatch.setattr(onnx, "_session", lambda path: None)
    monkeypatch.setattr(onnx, "_run", wrong)
    with pytest.raises(TombolaError, match="differs from PyTorch by nan"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(onnx, "find_spec", lambda name: None if name == "onnxscript" else find(name))
    with pytest.raises(TombolaError, match=r"needs onnxscript: pip install 'tombola\[onnx\]'"):
        export_onnx(tiny("bert"), tmp_path / "model.onnx")
