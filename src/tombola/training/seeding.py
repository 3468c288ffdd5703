"""Seeded random numbers, and the state of all generators as JSON."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Return the state of the generators of Python, NumPy and torch, and of the accelerator, if any."""
    kind, keys, *rest = np.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
    }
    if device := _accelerator():
        state[device] = torch.get_device_module(device).get_rng_state().numpy().tobytes().hex()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Restore a state that `rng_state` returned, directly or through JSON."""
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(_bytes(state["torch"]))
    if (device := _accelerator()) in state:
        torch.get_device_module(device).set_rng_state(_bytes(state[device]))


def _accelerator() -> str | None:
    """Return the type of the accelerator, such as `cuda` or `mps`, which draws its own random numbers."""
    device = torch.accelerator.current_accelerator(check_available=True)
    return device.type if device is not None else None


def _bytes(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Restore all generators after this context."""
    state = rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
