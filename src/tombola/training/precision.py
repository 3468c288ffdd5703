"""Which arithmetic a run uses: 32-bit floats, or bfloat16 where the hardware multiplies it natively."""

import logging
from typing import Literal

import torch

Precision = Literal["fp32", "bf16"]

_NATIVE = ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16")
"""Instruction sets of x86 and ARM processors that multiply bfloat16 without emulation."""

logger = logging.getLogger(__name__)


def resolve_precision(wanted: Literal["auto", "fp32", "bf16"]) -> Precision:
    """What a run with this setting really uses. `bf16` is autocast over 32-bit master weights."""
    if wanted == "fp32":
        return "fp32"
    native = _bf16_is_native()
    if wanted == "auto":
        return "bf16" if native else "fp32"
    if not native:
        logger.warning("this hardware emulates bf16, slower than fp32; precision: auto avoids that")
    return "bf16"


def _bf16_is_native() -> bool:
    if torch.cuda.is_available():
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in _NATIVE)
