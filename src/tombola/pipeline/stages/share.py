"""Train several tasks on one encoder, with or without a mask for each, and score one task of the result."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.errors import RecipeError
from tombola.foundations.hardware import Precision
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import LOG, MaskStage
from tombola.pipeline.stages.evaluate import EvaluateStage, metrics_of
from tombola.pipeline.stages.random_mask import RandomMask
from tombola.store.stage import Stage, Workspace
from tombola.training.log import TrainLog
from tombola.training.multitask.sampling import Sampling
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from tombola.masks import Mask
    from tombola.training.multitask.model import SharedModel


@dataclass(frozen=True, eq=False, kw_only=True)
class Share(Stage[TrainLog]):
    """One training of several tasks on one encoder."""

    kind: ClassVar = "share"
    version: ClassVar = 5
    distributed: ClassVar = True

    model: ModelSource
    data: tuple[DataSource, ...]
    """The training data of every task."""
    train: TrainSettings
    sampling: Sampling
    seed: int
    precision: Precision
    masks: tuple[MaskStage | None, ...] = ()
    """A mask for every task, None for one that keeps everything; if empty, all tasks share everything."""
    units: str | None = None
    """The kind of units that the masks remove."""

    @property
    def label(self) -> str:
        """The number of tasks, and whether they have tickets."""
        tickets = "with tickets" if self.masks else "without tickets"
        if any(isinstance(mask, RandomMask) for mask in self.masks):
            tickets = "with random tickets"
        return f"train {len(self.data)} tasks {tickets}"

    def training_steps(self) -> int:
        """Return the optimizer steps of the whole training."""
        from tombola.training.multitask.batches import steps_of
        from tombola.training.schedule import check_schedule, total_steps

        sizes, accumulate = [len(data.load()) for data in self.data], self.train.accumulate
        epoch_steps = [ceil(ceil(size / self.train.batch_size) / accumulate) for size in sizes]
        steps = total_steps(self.train, sum(steps_of(self.sampling, sizes, epoch_steps)) * accumulate)
        check_schedule(self.train, steps)
        return steps

    def run(self, space: Workspace) -> None:
        """Train, and save the encoder with every task's head and mask."""
        from tombola.tasks import encode, fitting_length
        from tombola.training.multitask.batches import MixedCollate
        from tombola.training.multitask.model import SharedModel, save_shared
        from tombola.training.multitask.training import train_shared

        tasks, tokenizer = [data.definition for data in self.data], self.model.tokenizer()
        model = SharedModel([self.model.load(task, self.seed) for task in tasks])
        masks = self._load_masks(space, model) if self.masks else None
        length = fitting_length(self.train.max_length, model.config)
        log = train_shared(
            model,
            [encode(data.load(), tokenizer, length) for data in self.data],
            self.train,
            collate=MixedCollate(tasks, tokenizer),
            seed=self.seed,
            precision=self.precision,
            folder=space.scratch,
            sampling=self.sampling,
            masks=masks,
            progress=space.progress,
        )
        save_shared(model, [task.name for task in tasks], tokenizer, space.folder, masks)
        space.write_json(LOG, log)

    def _load_masks(self, space: Workspace, model: SharedModel) -> list[Mask]:
        """Load every task's mask; a task without one keeps everything."""
        from tombola.masks import Mask, Units, fingerprint
        from tombola.masks.layout import HEAD

        assert self.units is not None
        classifier = model.models[0]
        base = fingerprint(classifier)
        full = Mask.full(Units.of(classifier, self.units, base))
        masks = [mask.load(space) if mask else full for mask in self.masks]
        for data, mask in zip(self.data, masks, strict=True):
            if any(name.startswith(HEAD) for name in mask.units.layout.shapes):
                raise RecipeError(
                    f"search.masks: the mask of {data.definition.name} also covers the task head, but every task has "
                    "its own: use a mask that was drawn without search.classifier"
                )
            mask.check(classifier, base=base)
        return masks

    def read(self, folder: Path) -> TrainLog:
        """Read the training log."""
        return TrainLog.model_validate_json((folder / LOG).read_bytes())


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluateShared(EvaluateStage):
    """The scores of one task of a shared model, under the task's mask if it has one."""

    kind: ClassVar = "evaluate_shared"
    version: ClassVar = 2

    model: Share
    task: str

    @property
    def label(self) -> str:
        """The task, and the data it is scored on."""
        return f"evaluate {self.task} on {self.data.split}"

    def plugged(self) -> list[Any]:
        """Return the metrics of the task, which a plugin may define."""
        return metrics_of(self.data)

    def run(self, space: Workspace) -> None:
        """Evaluate one task's model."""
        from tombola.models.loading import load_tokenizer
        from tombola.training.multitask.model import open_task

        folder = space.open(self.model)
        self.score(space, open_task(folder, self.task), load_tokenizer(folder))
