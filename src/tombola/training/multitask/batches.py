"""Multi-task batches: each batch is from one task, and the batches of all tasks are shuffled."""

from collections.abc import Iterator, Sequence
from itertools import count as count_up
from itertools import islice
from typing import Any

import numpy as np
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from tombola.tasks import Collate, Encoded, Task, collate_of
from tombola.training.batches import ShuffledBatches
from tombola.training.multitask.sampling import Sampling

TASK = "task"
"""The batch column with the index of the task."""


class Mixture:
    """The concatenated data of several tasks; every example carries its task."""

    def __init__(self, parts: Sequence[Encoded]) -> None:
        self.parts = [part.with_extra(TASK, np.full(len(part), task)) for task, part in enumerate(parts)]
        self.starts = np.cumsum([0, *map(len, parts)])
        self.lengths = np.concatenate([part.lengths for part in parts])

    def __len__(self) -> int:
        return len(self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of data that changes between epochs."""
        for part in self.parts:
            part.set_epoch(epoch)

    def __getitem__(self, index: int) -> dict[str, Any]:
        task = int(np.searchsorted(self.starts, index, side="right")) - 1
        return self.parts[task][index - int(self.starts[task])]


class MixedCollate(Collate):
    """Pads each batch in the way of its task."""

    def __init__(self, tasks: Sequence[Task], tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(tokenizer)
        self.each = [collate_of(task, tokenizer) for task in tasks]

    def __call__(self, examples: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch of one task."""
        batch: dict[str, Tensor] = self.each[examples[0][TASK]](examples)
        return batch


class MixedBatches(ShuffledBatches):
    """Batches of one task each, with tasks in random order.

    The `per_step` batches of one optimizer step, accumulated or distributed over processes, come from the same task.
    Each task's examples come in whole passes that continue across epochs: if sampling gives a small task more than
    its size, it is repeated, and if it gives a large one less, every example still gets its turn.
    """

    def __init__(
        self,
        lengths: Sequence[np.ndarray],
        batch_size: int,
        seed: int,
        *,
        sampling: Sampling,
        per_step: int = 1,
        group_by_length: bool = True,
    ) -> None:
        super().__init__(np.concatenate(lengths), batch_size, seed, group_by_length)
        self.batch_size = None  # else accelerate skips smaller batches, or fills them from another task
        self.parts = [ShuffledBatches(of_task, batch_size, seed, group_by_length) for of_task in lengths]
        self.starts = np.cumsum([0, *map(len, lengths)])
        self.per_step = per_step
        self.steps = steps_of(
            sampling,
            [len(of_task) for of_task in lengths],
            [-(-len(part) // per_step) for part in self.parts],
        )

    def __len__(self) -> int:
        return sum(self.steps) * self.per_step

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng((self.seed, self.epoch, 1))
        turns = rng.permutation(np.repeat(np.arange(len(self.steps)), self.steps))
        streams = [self._stream(task) for task in range(len(self.steps))]
        for task in turns:
            for batch in islice(streams[task], self.per_step):
                yield [int(self.starts[task]) + index for index in batch]

    def _stream(self, task: int) -> Iterator[list[int]]:
        """Yield the task's batches, continuing where the previous epochs stopped."""
        part = self.parts[task]
        passes, offset = divmod(self.epoch * self.steps[task] * self.per_step, len(part))

        def from_here() -> Iterator[list[int]]:
            for number in count_up(passes):
                part.set_epoch(number)
                yield from part

        return islice(from_here(), offset, None)


def steps_of(sampling: Sampling, sizes: Sequence[int], batches: Sequence[int]) -> list[int]:
    """Return the steps of each task in an epoch, which together make one pass over all data.

    `batches` holds the steps of a pass over each task, the result for proportional sampling. Otherwise a task's share
    is its size to the power `alpha` (0 if uniform), rounded to steps, with at least one step for every task.
    """
    if sampling.kind == "proportional":
        return list(batches)
    weights = np.asarray(sizes, dtype=float) ** (sampling.alpha if sampling.kind == "annealed" else 0.0)
    ideal = sum(batches) * weights / weights.sum()
    steps = np.maximum(1, np.floor(ideal)).astype(int)
    missing = max(0, sum(batches) - int(steps.sum()))
    steps[np.argsort(steps - ideal, kind="stable")[:missing]] += 1
    counts: list[int] = steps.tolist()
    return counts
