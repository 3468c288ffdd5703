"""onnxruntime keeps residuals and norms apart, and masks are made once."""

from collections import Counter
from pathlib import Path

import onnx
import onnxruntime
import pytest

from tests.tiny import tiny
from tombola.shrink import onnx_writing
from tombola.shrink.onnx_writing import quantise_onnx, write_onnx

pytestmark = pytest.mark.portable


def optimised(path: Path) -> Counter[str]:
    """The operators that onnxruntime makes of a graph."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path.with_suffix(".optimised"))
    options.log_severity_level = 3  # it warns that the file is for this machine
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return Counter(node.op_type for node in onnx.load(options.optimized_model_filepath).graph.node)


@pytest.mark.parametrize("model_type", ["bert", "gpt2"])  # norms after and before
def test_residuals_are_not_fused_with_norms(
    model_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = tiny(model_type).eval(), tmp_path / "model.onnx"
    write_onnx(model, path)
    assert optimised(path)["SkipLayerNormalization"] == 0
    assert optimised(path)["LayerNormalization"] == 5
    quantise_onnx(model, tmp_path / "model.int8.onnx")
    assert optimised(tmp_path / "model.int8.onnx")["SkipLayerNormalization"] == 0
    monkeypatch.setattr(onnx_writing, "keep_norms_apart", lambda graph: None)
    write_onnx(model, path)
    assert optimised(path)["SkipLayerNormalization"] > 0  # else the change would be needless


def test_the_mask_of_an_encoder_is_made_once(tmp_path: Path) -> None:
    counts = []
    for layers in (1, 3):
        write_onnx(tiny("bert", num_hidden_layers=layers).eval(), tmp_path / "model.onnx")
        counts.append(Counter(node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node))
    for operator in ("Cast", "Sub", "Unsqueeze", "Where", "IsNaN", "Slice"):
        assert counts[0][operator] == counts[1][operator], operator
    assert counts[1]["Softmax"] == 3
