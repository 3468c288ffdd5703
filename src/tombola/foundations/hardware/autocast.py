"""Running a model in a chosen precision."""

from typing import TYPE_CHECKING

from tombola.foundations.hardware.precision import Precision

if TYPE_CHECKING:
    import torch


def autocast(device: str, precision: Precision) -> "torch.autocast":
    """The context in which a model computes in `precision` over 32-bit weights."""
    import torch

    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(device, dtype=dtype, enabled=precision != "fp32")
