"""Whose turn it is: shares, shuffling, whole passes, and steps that belong to one task."""

from collections import Counter
from itertools import islice, pairwise

import numpy as np
import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from hypothesis import given
from hypothesis import strategies as st

from tests.training.multitask.toy import COLLATE, SIZES, toy_parts
from tombola.errors import DataError
from tombola.training.multitask.batches import MixedBatches, Mixture, steps_of
from tombola.training.multitask.sampling import PROPORTIONAL, Sampling

ANNEALED = Sampling(kind="annealed", alpha=0.5)
UNIFORM = Sampling(kind="uniform")


def batches(sampling: Sampling = PROPORTIONAL, per_step: int = 1, seed: int = 3) -> MixedBatches:
    return MixedBatches([part.lengths for part in toy_parts()], 8, seed, sampling=sampling, per_step=per_step)


def tasks_of(found: list[list[int]]) -> list[int]:
    """The task of each batch; a batch of two tasks is an error."""
    ends = np.cumsum(SIZES)
    tasks = [{int(np.searchsorted(ends, index, side="right")) for index in batch} for batch in found]
    assert all(len(one) == 1 for one in tasks)
    return [one.pop() for one in tasks]


def test_an_epoch_of_proportional_sampling_holds_every_example_once_in_batches_of_one_task() -> None:
    sampler = batches()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        found = list(sampler)
        assert sorted(index for batch in found for index in batch) == list(range(sum(SIZES)))
        assert Counter(tasks_of(found)) == {0: 5, 1: 3, 2: 2}
        assert len(found) == len(sampler) == 10


def test_tasks_take_turns_at_random_and_anew_in_each_epoch() -> None:
    sampler = batches()
    orders = []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        orders.append(tuple(tasks_of(list(sampler))))
    assert len(set(orders)) == 4
    assert all(order != tuple(sorted(order)) for order in orders)


def test_batches_depend_on_seed_and_epoch_alone() -> None:
    one, two, other = batches(), batches(), batches(seed=4)
    list(islice(two, 3))  # what was read before does not matter
    one.set_epoch(2), two.set_epoch(2), other.set_epoch(2)
    assert list(one) == list(two)
    assert list(one) != list(other)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [(Sampling(), [96, 24, 6]), (ANNEALED, [72, 36, 18]), (UNIFORM, [42, 42, 42])],
)
def test_a_task_gets_the_share_of_steps_that_its_size_is_worth(
    sampling: Sampling, expected: list[int]
) -> None:
    # sizes 3072, 768 and 192 in batches of 32: 126 steps; their square roots are as 4 : 2 : 1
    assert steps_of(sampling, [3072, 768, 192], [96, 24, 6]) == expected


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=8),
    st.floats(0, 1),
    st.integers(1, 64),
)
def test_no_task_goes_without_and_no_step_is_lost(sizes: list[int], alpha: float, size: int) -> None:
    whole = [-(-one // size) for one in sizes]
    steps = steps_of(Sampling(kind="annealed", alpha=alpha), sizes, whole)
    assert min(steps) >= 1
    assert sum(whole) <= sum(steps) <= sum(whole) + len(sizes)
    ordered = [count for _, count in sorted(zip(sizes, steps, strict=True))]
    assert all(a <= b + 1 for a, b in pairwise(ordered))


def test_passes_go_on_from_epoch_to_epoch() -> None:
    """Under uniform sampling a small task is repeated, and a large one is not cut short for ever."""
    sampler = batches(UNIFORM)
    assert sampler.steps == [4, 3, 3]
    seen: Counter[int] = Counter()
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for batch in sampler:
            seen.update(batch)
    assert {seen[index] for index in range(40)} == {8}  # 40 batches in passes of 5
    assert {seen[index] for index in range(40, 64)} == {10}  # 30 in passes of 3
    assert {seen[index] for index in range(64, 76)} == {15}  # 30 in passes of 2


def test_the_batches_of_an_accumulated_step_are_of_one_task() -> None:
    sampler = batches(per_step=2)
    found = tasks_of(list(sampler))
    assert len(found) == len(sampler) == 2 * (3 + 2 + 1)
    assert found[::2] == found[1::2]


def test_an_empty_task_is_refused() -> None:
    with pytest.raises(DataError, match="no examples"):
        MixedBatches([np.array([3, 4]), np.array([], dtype=int)], 8, 0, sampling=Sampling())


def test_a_mixture_gives_every_example_with_its_task() -> None:
    parts = toy_parts()
    mixture = Mixture(parts)
    assert len(mixture) == sum(SIZES)
    assert mixture.lengths.tolist() == [n for part in parts for n in part.lengths]
    for index, (task, own) in {0: (0, 0), 39: (0, 39), 40: (1, 0), 63: (1, 23), 75: (2, 11)}.items():
        assert mixture[index] == {**parts[task][own], "task": task}


def test_labels_are_classes_or_numbers_as_the_task_has_it() -> None:
    mixture = Mixture(toy_parts())
    assert COLLATE([mixture[0], mixture[1]])["labels"].dtype == torch.int64
    numbers = COLLATE([mixture[70], mixture[71]])
    assert numbers["labels"].dtype == torch.float32
    assert numbers["task"].tolist() == [2, 2]


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_share_every_batch_of_a_step_even_smaller_ones(
    processes: int, accumulate: int
) -> None:
    sampler = batches(per_step=processes * accumulate)
    shards = [BatchSamplerShard(sampler, processes, number) for number in range(processes)]
    for epoch in range(3):
        sampler.set_epoch(epoch)
        found = [list(shard) for shard in shards]
        assert [batch for step in zip(*found, strict=True) for batch in step] == list(sampler)
