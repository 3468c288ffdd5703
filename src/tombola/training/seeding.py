"""Random numbers that depend on a seed alone, and the state of all generators as plain JSON."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from transformers import set_seed


def rng_state() -> dict[str, Any]:
    """The state of the generators of Python, NumPy and torch (with CUDA where there is one)."""
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
    """Put all generators back into a state that `rng_state` gave, be it fresh or read from JSON."""
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
    """Whatever is drawn inside leaves no trace in the generators outside."""
    state = rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, random numbers depend on `seed` alone; outside, nothing has changed."""
    with undisturbed():
        set_seed(seed)
        yield
