"""Train several tasks on one encoder, optionally under their masks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from tombola.foundations.hardware import Precision
from tombola.masks import Mask
from tombola.objectives import Batch, Objective
from tombola.objectives.building import objective_of
from tombola.tasks import Encoded
from tombola.training.course import Progress
from tombola.training.log import TrainLog
from tombola.training.multitask.batches import TASK, MixedBatches, MixedCollate, Mixture
from tombola.training.multitask.masking import TaskMasks
from tombola.training.multitask.model import SharedModel
from tombola.training.multitask.sampling import PROPORTIONAL, Sampling
from tombola.training.run import train
from tombola.training.settings import TrainSettings


@dataclass(frozen=True)
class InTurn(Objective):
    """An objective that switches to the head and the mask of the batch's task."""

    inner: Objective
    model: SharedModel
    masks: TaskMasks | None

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the inner objective's loss."""
        self._turn_to(batch)
        return self.inner.loss(model, batch)

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Run the inner objective's step."""
        self._turn_to(batch)
        return self.inner.step(model, batch, backward)

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)

    def _turn_to(self, batch: Batch) -> None:
        self.model.task = int(batch[TASK][0])
        if self.masks is not None:
            self.masks.apply(self.model.task)


def train_shared(
    model: SharedModel,
    data: Sequence[Encoded],
    settings: TrainSettings,
    *,
    collate: MixedCollate,
    seed: int,
    precision: Precision,
    folder: Path,
    sampling: Sampling = PROPORTIONAL,
    masks: Sequence[Mask] | None = None,
    progress: Progress | None = None,
) -> TrainLog:
    """Train all tasks at once, in place, resuming from the last checkpoint in `folder`.

    One step count drives one schedule; the released code counts per tensor, which keeps the head of a small task in
    its warm-up. Without masks this is plain multi-task training, the baseline. With several processes, all of them
    train the same task in a step, so that one mask applies to all averaged gradients.
    """
    model.pad_with(collate.pad_id)

    def batches(processes: int) -> MixedBatches:
        return MixedBatches(
            [part.lengths for part in data],
            settings.batch_size,
            seed,
            sampling=sampling,
            per_step=settings.accumulate * processes,
            group_by_length=settings.group_by_length,
        )

    task_masks = TaskMasks(model, masks) if masks is not None else None
    inner = objective_of(settings.loss, settings.adversary, settings.r_drop)
    try:
        return train(
            model,
            Mixture(data),  # type: ignore[arg-type]  # it has everything that training needs
            settings,
            collate=collate,
            seed=seed,
            precision=precision,
            folder=folder,
            objective=InTurn(inner, model, task_masks),
            callbacks=[task_masks] if task_masks is not None else [],
            batches=batches,
            progress=progress,
        )
    finally:
        if task_masks is not None:
            task_masks.release()
