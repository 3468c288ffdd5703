"""Training attends by plain operations where that is faster, and leaves the model as it was."""

from pathlib import Path

import pytest
import torch

from tests.tiny import tiny, token_ids
from tests.training.toy import toy_train
from tombola.models.attention import attending_by
from tombola.training.attention import fastest_attention
from tombola.training.multitask.model import SharedModel


def with_dropout(model_type: str = "bert") -> torch.nn.Module:
    model = tiny(model_type, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    assert model.config._attn_implementation == "sdpa"
    return model


def test_bf16_on_a_cpu_is_trained_with_plain_attention() -> None:
    model = with_dropout()
    with fastest_attention(model, "bf16"):
        assert model.config._attn_implementation == "eager"
    assert model.config._attn_implementation == "sdpa"


def test_tasks_share_an_encoder_that_attends_alike() -> None:
    model = SharedModel([with_dropout(), with_dropout()])
    with fastest_attention(model, "bf16"):  # type: ignore[arg-type]
        assert {part.base_model.config._attn_implementation for part in model.models} == {"eager"}
    assert {part.base_model.config._attn_implementation for part in model.models} == {"sdpa"}


@pytest.mark.parametrize(("precision", "dropout"), [("fp32", 0.1), ("bf16", 0.0)])
def test_other_trainings_keep_the_fused_attention(precision: str, dropout: float) -> None:
    model = tiny("bert", hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    with fastest_attention(model, precision):  # type: ignore[arg-type]
        assert model.config._attn_implementation == "sdpa"


def test_both_ways_compute_the_same() -> None:
    model = tiny("bert").eval()
    ids = token_ids(3, 9)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    expected = model(ids, attention_mask=mask).logits
    with attending_by(model, "eager"):
        torch.testing.assert_close(model(ids, attention_mask=mask).logits, expected)


@pytest.mark.bf16
def test_the_loop_attends_by_plain_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = with_dropout(), set()
    forward = type(model).forward

    def noticed(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        seen.add(self.config._attn_implementation)
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(type(model), "forward", noticed)
    toy_train(model, tmp_path, precision="bf16")
    assert seen == {"eager"}
    assert model.config._attn_implementation == "sdpa"
