"""Random numbers from a seed alone."""

import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tombola.training.seeding import rng_state, set_rng_state, undisturbed


def numbers() -> tuple[float, ...]:
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(()).item()


def test_the_state_of_all_generators_survives_json() -> None:
    numbers()  # leaves a cached Gaussian in Python's and NumPy's generators
    state = json.loads(json.dumps(rng_state()))
    first = [numbers() for _ in range(3)]
    set_rng_state(state)
    assert [numbers() for _ in range(3)] == first


def test_an_undisturbed_context_leaves_the_generators_as_they_were() -> None:
    state = rng_state()
    outside = [numbers() for _ in range(2)]
    set_rng_state(state)
    with undisturbed():
        numbers()
    assert [numbers() for _ in range(2)] == outside


def test_the_generator_of_any_accelerator_is_included(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout draws from it: without its state, a resumed training on Apple's GPUs would end with other weights."""
    generator = torch.Generator().manual_seed(1)
    module = SimpleNamespace(get_rng_state=generator.get_state, set_rng_state=generator.set_state)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **options: torch.device("mps"))
    monkeypatch.setattr(torch, "get_device_module", lambda device: {"mps": module}[device])
    state = json.loads(json.dumps(rng_state()))
    first = torch.rand(3, generator=generator)
    set_rng_state(state)
    assert torch.equal(torch.rand(3, generator=generator), first)
    with undisturbed():
        torch.rand(1, generator=generator)
    after = torch.rand(1, generator=generator)
    set_rng_state(state)
    assert torch.equal(torch.rand(4, generator=generator)[3:], after)
