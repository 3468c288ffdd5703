"""The device of loaded models: the CPU, or the device of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_device: ContextVar[str] = ContextVar("device", default="cpu")


@contextmanager
def models_on(device: str) -> Iterator[None]:
    """Place models that are loaded in this context on a device.

    Args:
        device: A torch device, such as `cpu` or `cuda`.
    """
    before = _device.set(device)
    try:
        yield
    finally:
        _device.reset(before)


def placed(model: PreTrainedModel) -> PreTrainedModel:
    """Move the model to the current device.

    Args:
        model: A model that was just loaded.
    """
    device = _device.get()
    if device != "cpu":
        model.to(device)
    return model
