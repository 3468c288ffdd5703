"""The order of batches: a permutation, of like lengths, and a function of seed and epoch alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.toy import TOKENIZER, toy_data
from tombola.errors import DataError
from tombola.tasks import Collate
from tombola.training.batches import ShuffledBatches, ordered_batches


def epoch_of(sampler: ShuffledBatches, epoch: int) -> list[list[int]]:
    sampler.set_epoch(epoch)
    return list(sampler)


@given(
    lengths=st.lists(st.integers(1, 100), min_size=1, max_size=200),
    size=st.integers(1, 9),
    seed=st.integers(0, 2**32),
    epoch=st.integers(0, 50),
    grouped=st.booleans(),
)
def test_every_epoch_holds_each_example_once(
    lengths: list[int], size: int, seed: int, epoch: int, grouped: bool
) -> None:
    sampler = ShuffledBatches(np.array(lengths), size, seed, grouped)
    batches = epoch_of(sampler, epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert len(batches) == len(sampler)
    assert all(len(batch) == size for batch in batches[:-1])
    np.random.seed(0)
    again = ShuffledBatches(np.array(lengths), size, seed, grouped)
    assert epoch_of(again, epoch) == batches


def test_epochs_and_seeds_differ() -> None:
    lengths = np.random.default_rng(0).integers(1, 60, 300)
    one, two = ShuffledBatches(lengths, 8, 1), ShuffledBatches(lengths, 8, 2)
    orders = [epoch_of(sampler, epoch) for sampler in (one, two) for epoch in (0, 1)]
    assert all(orders[i] != orders[j] for i in range(4) for j in range(i))


def test_grouping_leaves_little_padding() -> None:
    lengths = np.random.default_rng(0).integers(5, 120, 6400)

    def padded_share(grouped: bool) -> float:
        batches = epoch_of(ShuffledBatches(lengths, 32, 0, grouped), 0)
        total = sum(len(batch) * lengths[batch].max() for batch in batches)
        return 1 - lengths.sum() / total

    assert padded_share(False) > 0.4
    assert padded_share(True) < 0.03


def test_long_and_short_batches_are_mixed() -> None:
    lengths = np.arange(6400) % 100
    means = [lengths[batch].mean() for batch in epoch_of(ShuffledBatches(lengths, 32, 0), 0)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.2


def test_ordered_batches_are_those_of_training() -> None:
    data, collate = toy_data(20), Collate(TOKENIZER)
    epoch = list(ordered_batches(data, collate, size=8, seed=3))
    assert [len(batch["labels"]) for batch in epoch] == [8, 8, 4]
    longer = list(ordered_batches(data, collate, size=8, seed=3, count=5))
    assert len(longer) == 5
    assert all(
        (one["input_ids"] == two["input_ids"]).all() for one, two in zip(epoch, longer[:3], strict=True)
    )
    assert epoch[0]["input_ids"].tolist() != longer[3]["input_ids"].tolist()


def test_no_examples_is_an_error() -> None:
    with pytest.raises(DataError, match="no examples"):
        ShuffledBatches(np.array([]), 8, 0)
