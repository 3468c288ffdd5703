"""Where models are put when they are opened: on the processor, or on the device that a stage is about."""

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
    """Inside, models that are opened are put on a device.

    Args:
        device: What torch calls it, such as `cpu` or `cuda`.
    """
    before = _device.set(device)
    try:
        yield
    finally:
        _device.reset(before)


def placed(model: PreTrainedModel) -> PreTrainedModel:
    """The model on the device that models are put on.

    Args:
        model: A model that was just opened.
    """
    device = _device.get()
    if device != "cpu":
        model.to(device)
    return model
