"""Random numbers from a seed alone."""

import json
import random

import numpy as np
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
