"""The composition and order of batches: a pure function of seed and epoch.

No global generator is used, so a resumed run sees exactly the remaining batches.
"""

from collections.abc import Callable, Iterator
from itertools import count as count_up
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from torch.utils.data import Sampler

from tombola.errors import DataError

if TYPE_CHECKING:
    from tombola.tasks import Encoded

WINDOW = 50
"""Number of batches within which examples are sorted by length: enough to save padding, few enough to stay random."""


class ShuffledBatches(Sampler[list[int]]):
    """Batches of indices in random order, with examples of similar length unless `group_by_length` is false.

    Every epoch holds each example once. Only the last batch may be smaller; its examples are random.
    """

    drop_last = False

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, group_by_length: bool = True) -> None:
        if len(lengths) == 0:
            raise DataError("there are no examples to train on")
        self.lengths = np.asarray(lengths)
        self.size = batch_size
        self.batch_size: int | None = batch_size
        """For accelerate, which fills up a smaller batch of the last step if there are several processes."""
        self.seed = seed
        self.group_by_length = group_by_length
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.size)

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(len(self.lengths))
        full, size = len(order) // self.size, self.size
        batches = order[: full * size].reshape(full, size)
        if self.group_by_length and full:
            batches = self._grouped(batches)[rng.permutation(full)]
        yield from batches.tolist()
        if len(order) > full * size:
            yield order[full * size :].tolist()

    def _grouped(self, batches: np.ndarray) -> np.ndarray:
        window = min(WINDOW, max(1, len(batches) // 4))
        sorted_windows = []
        for start in range(0, len(batches), window):
            chunk = batches[start : start + window]
            by_length = np.argsort(self.lengths[chunk.ravel()], kind="stable")
            sorted_windows.append(chunk.ravel()[by_length].reshape(chunk.shape))
        return np.concatenate(sorted_windows)


def ordered_batches(
    data: "Encoded",
    collate: Callable[[list[dict[str, Any]]], dict[str, Any]],
    *,
    size: int,
    seed: int,
    count: int | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield padded batches in training order: one epoch, or `count` batches over as many epochs as needed."""
    sampler = ShuffledBatches(data.lengths, size, seed)
    for indices in sampler if count is None else islice(_epochs(sampler), count):
        yield collate([data[index] for index in indices])


def _epochs(sampler: ShuffledBatches) -> Iterator[list[int]]:
    for epoch in count_up():
        sampler.set_epoch(epoch)
        yield from sampler
