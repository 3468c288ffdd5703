"""The 8-bit file attends by one operator of onnxruntime wherever that gives the outputs of the model."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from tests.shrink.masks import half
from tests.tiny import tiny
from tombola.shrink import shrink
from tombola.shrink.inputs import outputs_of, random_inputs
from tombola.shrink.onnx_attention import can_fuse, fused_attention
from tombola.shrink.onnx_writing import quantise_onnx, write_onnx
from tombola.shrink.runtime import open_session, run_session

pytestmark = pytest.mark.portable

BIDIRECTIONAL = ["bert", "roberta", "distilbert", "electra"]


def fusable(model):
    with torch.no_grad():
        return can_fuse(model.eval(), random_inputs(model, 2, 9, padded=True))


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def test_the_fused_graph_gives_the_outputs_of_a_shrunk_model(tmp_path: Path) -> None:
    model = tiny("bert").eval()
    shrunk = shrink(model, half(model, "head+neuron", empty=0)).eval()
    plain, fused = tmp_path / "plain.onnx", tmp_path / "fused.onnx"
    write_onnx(shrunk, plain)
    assert write_onnx(shrunk, fused, fused=True).max_difference < 1e-5
    assert {node.domain for node in onnx.load(plain).graph.node} == {""}  # any runtime opens it
    assert operators(fused)["MultiHeadAttention"] > 0
    assert operators(fused).total() < operators(plain).total()
    inputs = random_inputs(shrunk, 5, 33, padded=True, seed=7)
    expected = outputs_of(shrunk, inputs)["logits"]
    found = run_session(open_session(fused), inputs)["logits"]
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("model_type", BIDIRECTIONAL)
def test_encoders_are_fused(model_type: str) -> None:
    assert fusable(tiny(model_type))


@pytest.mark.parametrize("model_type", ["llama", "gpt2", "modernbert", "deberta-v2", "mpnet"])
def test_other_attention_is_left_as_it_is(model_type: str) -> None:
    model = tiny(model_type)
    before = model.config._attn_implementation
    assert not fusable(model)
    assert model.config._attn_implementation == before


def test_a_model_attends_as_before_after_its_export() -> None:
    model = tiny("bert").eval()
    inputs = random_inputs(model, 3, 9, padded=True)
    expected, before = outputs_of(model, inputs)["logits"], model.config._attn_implementation
    with fused_attention(model):
        assert model.config._attn_implementation != before
    assert model.config._attn_implementation == before
    torch.testing.assert_close(outputs_of(model, inputs)["logits"], expected, rtol=0, atol=0)


def test_eight_bits_are_made_of_the_fused_graph_or_else_of_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("bert").eval()
    quantise_onnx(model, tmp_path / "fused.onnx")
    assert operators(tmp_path / "fused.onnx")["MultiHeadAttention"] == model.config.num_hidden_layers
    monkeypatch.setattr("tombola.shrink.onnx_writing.can_fuse", lambda *_: False)
    quantise_onnx(model, tmp_path / "plain.onnx")
    assert operators(tmp_path / "plain.onnx")["MultiHeadAttention"] == 0
    assert (
        operators(tmp_path / "plain.onnx")["MatMulInteger"]
        == operators(tmp_path / "fused.onnx")["MatMulInteger"]
    )
    inputs = random_inputs(model, 3, 9, padded=True)
    fused, plain = (
        run_session(open_session(tmp_path / f"{name}.onnx"), inputs) for name in ("fused", "plain")
    )
    np.testing.assert_allclose(fused["logits"], plain["logits"], atol=0.05)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fused.onnx", "plain.onnx"]


def test_a_fused_graph_that_differs_from_the_model_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny("bert").eval()
    wrong = {"num_heads": 1, "scale": 3.0}
    symbolic = torch.onnx.ops.symbolic
    monkeypatch.setattr(
        "torch.onnx.ops.symbolic", lambda name, inputs, attrs, **how: symbolic(name, inputs, wrong, **how)
    )
    quantise_onnx(model, tmp_path / "model.onnx")
    assert operators(tmp_path / "model.onnx")["MultiHeadAttention"] == 0
