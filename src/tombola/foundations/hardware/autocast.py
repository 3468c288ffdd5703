"""Run a model in a chosen precision."""

from typing import TYPE_CHECKING

from tombola.foundations.hardware.precision import Precision

if TYPE_CHECKING:
    import torch


def autocast(device: str, precision: Precision) -> "torch.autocast":
    """Return a context in which a model with 32-bit weights computes in `precision`."""
    import torch

    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device, dtype=dtype, enabled=precision != "fp32")
