"""Train a model on the task, under a mask or without: fine-tuning, a round of IMP, retraining a ticket."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.foundations.checksums import CHECKSUMS, check_checksums, write_checksums
from tombola.foundations.quiet import quiet
from tombola.foundations.seeds import numbered_seed
from tombola.models.controls import Control
from tombola.pipeline.references import DataSource
from tombola.pipeline.stages.base import EPOCHS, LOG, MaskStage, ModelStage, StageResult, cut_of
from tombola.pipeline.stages.course import COURSE, Every, ScoreCourse, Scorekeeper
from tombola.pipeline.stages.defend import tokenizer_of
from tombola.pipeline.stages.evaluate import metrics_of
from tombola.pipeline.stages.learning import (
    LearningStage,
    attackable_columns,
    distilling_teacher,
    planned_steps,
    training_collate,
    training_data,
    whole_schedule,
)
from tombola.store.stage import Workspace
from tombola.training.log import TrainLog
from tombola.training.selective.freezing import FREEZING, Freezing
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.tasks import Task
    from tombola.training.course import Evaluation

logger = logging.getLogger(__name__)


class Frozen(StageResult):
    """How often selective training froze each tensor, by `layer/kind`."""

    steps: int
    tensors: dict[str, float]


class Trained(StageResult):
    """The result of a training besides the weights."""

    log: TrainLog
    frozen: Frozen | None = None
    course: ScoreCourse | None = None
    """Scores during training, if requested."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Train(LearningStage[Trained]):
    """One training run."""

    kind: ClassVar = "train"
    version: ClassVar = 5

    train: TrainSettings
    mask: MaskStage | None = None
    start: ModelStage[Any] | None = None
    """The model whose weights, head included, training starts from; by default the pre-trained one.

    A small model that was cut out is used itself; from any other, the weights are copied into the pre-trained one."""
    head: ModelStage[Any] | None = None
    """The model whose head training starts from, if that is another one."""
    fresh_head: int = 0
    """Re-initialise the head, whatever `start` has, differently for every number. 0 keeps it."""
    stop_at: float | None = None
    """Stop after this many steps of the whole schedule, or after this share of them if below 1."""
    control: Control | None = None
    keep_epochs: bool = False
    watched: tuple[DataSource, ...] = ()
    """Data to score the model on during training."""
    choose: DataSource | None = None
    """Data on which to choose the step whose model is kept; by default the last one is kept."""
    score_every: Every = "epoch"

    @property
    def label(self) -> str:
        """The model that is trained."""
        return "fine-tune" if self.noun == "the dense model" else f"train {self.noun}"

    @property
    def noun(self) -> str:
        """The small model, the ticket or the dense model."""
        if cut_of(self.start) is not None:
            return "the small model"
        return "the dense model" if self.mask is None else "the ticket"

    def plugged(self) -> list[Any]:
        """Return the model's family, if the training depends on the model's parts, and the metrics of scored data."""
        uses_parts = self.control or self.train.select or self.model.pooler == "new"
        scoring = [name for data in self._scored for name in metrics_of(data)]
        return [*([self.model.family()] if uses_parts else []), *scoring]

    @property
    def _scored(self) -> list[DataSource]:
        return [*self.watched, *([self.choose] if self.choose is not None else [])]

    def further_settings(self) -> dict[str, Any]:
        """Return how scores during training are computed, and the columns that an attack in the loop may change."""
        scoring = [_scoring(data.definition) for data in self._scored]
        return {**attackable_columns(self), **({"scoring": scoring} if scoring else {})}

    def training_steps(self) -> int:
        """Return the optimizer steps of this training."""
        return planned_steps(self.train, self.data, self.stop_at)

    def whole_epochs(self) -> int:
        """Return the number of whole epochs, after each of which `keep_epochs` keeps the model."""
        from tombola.pipeline.engines.ranks import ranks
        from tombola.training.schedule import last_step

        steps = whole_schedule(self.train, self.data, ranks())
        return last_step(self.stop_at, steps) // self._steps_per_epoch() if steps else 0

    def _steps_per_epoch(self) -> int:
        from tombola.pipeline.engines.ranks import ranks

        return whole_schedule(self._one_epoch, self.data, ranks())

    @property
    def _one_epoch(self) -> TrainSettings:
        return self.train.model_copy(update={"steps": None, "epochs": 1.0})

    def run(self, space: Workspace) -> None:
        """Train, and save an ordinary model folder with the mask."""
        from tombola.masks import MASK
        from tombola.models.loading import load_model
        from tombola.pipeline.engines.ranks import is_main
        from tombola.training.run import train

        task, tokenizer = self.data.definition, tokenizer_of(self.model, self.defend, space)
        model = prepare(self, space)
        mask = self.mask.load(space) if self.mask else None
        data = training_data(self, space, model)
        keeper = self._scorekeeper(space, tokenizer, len(data)) if self._scored else None
        evaluations = [_keep_epochs(space)] if self.keep_epochs else []
        evaluations += [keeper.evaluation(self.score_every)] if keeper else []
        log = train(
            model,
            data,
            self.train,
            collate=training_collate(self),
            seed=self.seed,
            precision=self.precision,
            folder=space.scratch,
            mask=mask,
            teacher=distilling_teacher(self, space),
            stop_at=self.stop_at,
            progress=space.progress,
            evaluations=evaluations,
        )
        if keeper is not None and is_main():
            course = keeper.close(log.steps, model)
            space.write_json(COURSE, course)
            if course.chosen not in (None, log.steps):
                model = load_model(keeper.best, task, seed=0)
        if self.keep_epochs:
            _number_epochs(space)
        if (space.scratch / FREEZING).is_file():  # rank 0 alone writes it, and only if there were steps
            (space.scratch / FREEZING).rename(space.folder / FREEZING)
        self.save(space, model, tokenizer)
        if mask is not None:
            mask.save(space.folder / MASK)
        space.write_json(LOG, log)

    def read(self, folder: Path) -> Trained:
        """Read the log of the training, its scores, and what it froze."""
        frozen = None
        if (folder / FREEZING).is_file():
            freezing = Freezing.read(folder / FREEZING)
            frozen = Frozen(steps=freezing.steps, tensors=freezing.tensors())
        return Trained(
            log=TrainLog.model_validate_json((folder / LOG).read_bytes()),
            frozen=frozen,
            course=ScoreCourse.load(folder / COURSE) if (folder / COURSE).is_file() else None,
        )

    def _scorekeeper(
        self, space: Workspace, tokenizer: PreTrainedTokenizerBase, examples: int
    ) -> Scorekeeper:
        from tombola.pipeline.engines.ranks import ranks
        from tombola.training.schedule import total_steps

        return Scorekeeper(
            space.scratch / "scored",
            tokenizer,
            [data.load() for data in self.watched],
            self.choose.load() if self.choose is not None else None,
            self.train.max_length,
            self.precision,
            total_steps(self._one_epoch, ceil(examples / self.train.batch_size), ranks()),
        )


def _scoring(task: Task) -> list[Any]:
    """Return the metrics of a task, and what else of it decides on scores alone."""
    settings = task.kind_settings
    changed = settings.model_dump(mode="json", include=set(settings.unhashed), exclude_defaults=True)
    if task.unanswerable:
        changed["unanswerable"] = True
    return [*task.metrics, changed] if changed else list(task.metrics)


def prepare(stage: Train, space: Workspace) -> PreTrainedModel:
    """Return the model before its first step: rewound to the start of this training, and masked.

    Everything is loaded from disk, so no tensor of an earlier round can be mistaken for the rewind point.
    """
    from tombola.masks import fingerprint
    from tombola.models.controls import apply_control
    from tombola.models.heads import copy_base, copy_head, renew_head

    task = stage.data.definition
    small = stage.start if cut_of(stage.start) is not None else None
    model = small.load(space, task) if small is not None else stage.model.load(task, stage.seed)
    base = fingerprint(model) if stage.mask is not None else None
    if stage.start is not None and small is None:
        start = stage.start.load(space, task)
        copy_base(start, model)
        if not stage.fresh_head:
            copy_head(start, model)
    if stage.fresh_head:
        renew_head(model, numbered_seed(stage.seed, stage.fresh_head))
    if stage.head is not None:
        copy_head(stage.head.load(space, task), model)
    if stage.control is not None:
        apply_control(stage.control, model, stage.seed)
    if stage.mask is not None:
        mask = stage.mask.load(space)
        mask.check(model, base=base)
        mask.apply(model)
    return model


def _keep_epochs(space: Workspace) -> Evaluation:
    """Return a callback that saves the model of every epoch, by step, for curves over training; it survives a kill."""
    from tombola.training.course import Evaluation

    def keep(step: int, model: PreTrainedModel) -> None:
        with quiet():
            model.save_pretrained(folder := space.scratch / EPOCHS / str(step))
        write_checksums(folder)

    return Evaluation(keep)


def _number_epochs(space: Workspace) -> None:
    """Move the models of `_keep_epochs` to the stage's folder, numbered from 1."""
    kept = sorted((space.scratch / EPOCHS).glob("*"), key=lambda folder: int(folder.name))
    (space.folder / EPOCHS).mkdir()
    for epoch, folder in enumerate(kept, start=1):
        check_checksums(
            folder, f"delete {space.folder} and run the same command again, which trains from the start"
        )
        (folder / CHECKSUMS).unlink(missing_ok=True)
        folder.rename(space.folder / EPOCHS / str(epoch))
