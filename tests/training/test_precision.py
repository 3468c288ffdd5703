"""Which arithmetic is chosen on which hardware."""

import logging

import pytest
import torch

from tombola.training import resolve_precision


@pytest.mark.parametrize(
    ("capabilities", "native"),
    [
        ({"architecture": "x86_64", "avx2": True}, False),
        ({"architecture": "x86_64", "avx512_f": True, "avx512_bf16": False}, False),  # torch would emulate it
        ({"architecture": "x86_64", "avx512_f": True, "avx512_bf16": True}, True),
        ({"architecture": "x86_64", "amx_bf16": True}, True),
        ({"architecture": "arm64", "neon": True, "bf16": True}, True),
    ],
)
def test_auto_takes_bf16_where_the_processor_has_it(
    capabilities: dict[str, object],
    native: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert resolve_precision("auto") == ("bf16" if native else "fp32")
    assert resolve_precision("fp32") == "fp32"
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert resolve_precision("bf16") == "bf16"
    assert bool(caplog.records) is not native


@pytest.mark.parametrize("native", [True, False])
def test_auto_asks_the_gpu_if_there_is_one(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert resolve_precision("auto") == ("bf16" if native else "fp32")
