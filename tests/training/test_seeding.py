"""Random numbers from a seed alone."""

import json
import random

import numpy as np
import pytest
import torch

from tests.tiny import MODEL_TYPES, tiny
from tombola.training import fresh_head, seeded
from tombola.training.seeding import rng_state, set_rng_state, undisturbed


def numbers() -> tuple[float, ...]:
    return random.random(), random.gauss(0, 1), np.random.rand(), np.random.randn(), torch.rand(()).item()


def test_the_state_of_all_generators_survives_json() -> None:
    numbers()  # leaves a cached Gaussian in Python's and NumPy's generators
    state = json.loads(json.dumps(rng_state()))
    first = [numbers() for _ in range(3)]
    set_rng_state(state)
    assert [numbers() for _ in range(3)] == first


def test_a_seeded_block_depends_on_its_seed_alone() -> None:
    state = rng_state()
    outside = [numbers() for _ in range(2)]
    set_rng_state(state)
    with seeded(3):
        inside = numbers()
    assert [numbers() for _ in range(2)] == outside
    with undisturbed(), seeded(3):
        assert numbers() == inside
    with seeded(4):
        assert numbers() != inside


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_fresh_head_depends_on_the_seed_and_leaves_the_base(model_type: str) -> None:
    one, two = tiny(model_type, num_labels=3, seed=0), tiny(model_type, num_labels=3, seed=1)
    before = {name: value.clone() for name, value in one.state_dict().items()}
    base = {id(parameter) for parameter in one.base_model.parameters()}
    head = [name for name, parameter in one.named_parameters() if id(parameter) not in base]
    fresh_head(one, seed=5)
    torch.rand(7)
    fresh_head(two, seed=5)
    after, other = one.state_dict(), two.state_dict()
    assert head
    assert all(torch.equal(after[name], other[name]) for name in head)
    assert all(not torch.equal(after[name], before[name]) for name in head)
    assert all(torch.equal(after[name], before[name]) for name in after if name not in head)
    fresh_head(two, seed=6)
    matrices = [name for name in head if after[name].dim() == 2]
    assert all(not torch.equal(after[name], two.state_dict()[name]) for name in matrices)


def test_a_fresh_head_keeps_what_is_tied_to_the_base() -> None:
    model = tiny("bert", "masked-lm")
    embeddings = model.bert.embeddings.word_embeddings.weight.clone()
    fresh_head(model, seed=0)
    assert torch.equal(model.cls.predictions.decoder.weight, embeddings)
