"""Seeded random numbers, and the state of all generators as JSON."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def rng_state() -> dict[str, Any]:
    """Return the state of the generators of Python, NumPy and torch (and CUDA, if available)."""
    kind, keys, *rest = np.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": [kind, np.asarray(keys).tolist(), *rest],
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state().numpy().tobytes().hex()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Restore a state that `rng_state` returned, directly or through JSON."""
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    np.random.set_state(tuple(state["numpy"]))
    torch.set_rng_state(_bytes(state["torch"]))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(_bytes(state["cuda"]))


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
