"""The training loop for weights or gates, on one task or several."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.optim import Optimizer
from transformers import PreTrainedModel, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback

from tombola.augmentations.live import LiveTexts
from tombola.errors import TombolaError
from tombola.foundations.hardware import Precision
from tombola.foundations.hardware.memory import kept_for_reuse
from tombola.foundations.quiet import quiet
from tombola.objectives import Objective
from tombola.training.attention import fastest_attention
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import Checkpoints, require_processes, step_of
from tombola.training.course import Course, Evaluation, Progress
from tombola.training.dropout import dropout_of, has_dropout
from tombola.training.log import TrainLog, logging_interval
from tombola.training.schedule import check_schedule, last_step, total_steps
from tombola.training.settings import TrainSettings
from tombola.training.trackers import check_trackers, reporting, run_name
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.masks import Mask
    from tombola.tasks import Collate, Encoded

_SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup", "cosine": "cosine"}

Batching = Callable[[int], ShuffledBatches]
"""Returns the batches for the given number of processes."""

Log = TypeVar("Log", bound=TrainLog)


@dataclass(frozen=True)
class TrainingRun:
    """What a training of weights and a training of gates have in common.

    Attributes:
        data: Encoded examples.
        settings: The training settings.
        collate: Pads examples to a batch.
        seed: The seed of batch order and dropout.
        precision: The arithmetic of the passes.
        folder: The folder for checkpoints during the run.
        stop_at: Stop after this optimizer step of the full schedule, or after this fraction of it if below 1.
        progress: Called after each step.
        evaluations: Called on the model during training.
        batches: Replaces the shuffled batches of `data`.
    """

    data: "Encoded"
    settings: TrainSettings
    collate: "Collate"
    seed: int
    precision: Precision
    folder: Path
    stop_at: float | None = None
    progress: Progress | None = None
    evaluations: Sequence[Evaluation] = ()
    batches: Batching | None = None

    def identity(self) -> dict[str, Any]:
        """Return what must match for the run to resume from a checkpoint."""
        return {
            **self.settings.model_dump(mode="json", exclude=set(self.settings.unhashed)),
            "examples": len(self.data),
            "tokens": int(self.data.lengths.sum()),
            "seed": self.seed,
            "precision": self.precision,
            "stop_at": self.stop_at,
        }

    def ordered(self, processes: int) -> ShuffledBatches:
        """Return the batches in the order of training, for a number of processes."""
        if self.batches is not None:
            return self.batches(processes)
        settings = self.settings
        return ShuffledBatches(self.data.lengths, settings.batch_size, self.seed, settings.group_by_length)


def run_loop(
    model: PreTrainedModel,
    run: TrainingRun,
    *,
    trainer: Callable[..., ObjectiveTrainer],
    objective: Objective,
    optimizer: tuple[type[Optimizer], dict[str, Any]],
    identity: Mapping[str, Any],
    log: type[Log],
    callbacks: Sequence[TrainerCallback] = (),
) -> Log:
    """Train in place, resuming from the last checkpoint in the run's folder.

    On one machine, equal arguments give bit-equal results and curves, whether or not the run was interrupted.

    Args:
        model: The model that computes the loss.
        run: The data, the settings and the folder.
        trainer: Creates the Trainer, whose class determines what is optimised and saved in checkpoints.
        objective: The objective to minimise.
        optimizer: The optimizer's class and arguments.
        identity: What else, besides the run's own identity, must match to resume from a checkpoint.
        log: The class of the log to return.
        callbacks: Additional callbacks of the Trainer, called before those of the loop.
    """
    data, settings, collate = run.data, run.settings, run.collate
    if total_steps(settings, 1) == 0:
        return log.untrained(run.precision)
    if settings.augment is not None and not isinstance(data, LiveTexts):
        raise TombolaError("augment: the data contains no texts to change: pass it as LiveTexts")
    checkpoints = Checkpoints(run.folder / "checkpoints", {**run.identity(), **identity})
    resumed = checkpoints.last()
    with quiet(), lent(model, collate.pad_id), dropout_of(model, settings.dropout, settings.head_dropout):
        arguments = arguments_of(settings, run.seed, run.precision, run.folder)
        arguments._n_gpu = min(arguments.n_gpu, 1)  # one device per process; no DataParallel
        if (key := settings.two_passes) is not None and not has_dropout(model):
            raise TombolaError(
                f"{key}: compares two dropout passes, but the model has no dropout: set dropout, for example to 0.1"
            )
        if resumed is not None:
            require_processes(resumed, arguments.world_size)
        order = run.ordered(arguments.world_size)
        arguments.max_steps = total_steps(settings, len(order), arguments.world_size)
        check_schedule(settings, arguments.max_steps, run.stop_at)
        arguments.logging_steps = logging_interval(arguments.max_steps)
        end = last_step(run.stop_at, arguments.max_steps)
        course = Course(order, data, collate, settings.checkpoint_minutes, end, run.progress, run.evaluations)
        training = trainer(
            model,
            arguments,
            objective=objective,
            batches=order,
            checkpoints=checkpoints,
            clip_per=settings.clip_per,
            train_dataset=data,
            data_collator=collate,
            optimizer_cls_and_kwargs=optimizer,
            callbacks=[*callbacks, course],
        )
        training.remove_callback(PrinterCallback)
        with (
            reporting(training, settings.report_to),
            kept_for_reuse(),
            fastest_attention(model, run.precision),
        ):
            training.train(resume_from_checkpoint=str(resumed) if resumed else None)
    return log.of(
        training.state.log_history,
        steps=training.state.global_step,
        epochs=training.state.epoch,
        precision=run.precision,
        seconds=training.seconds,
        examples_per_second=training.examples / (training.seconds - training.seconds_before),
        resumed_from=step_of(resumed) if resumed else None,
    )


def arguments_of(settings: TrainSettings, seed: int, precision: Precision, folder: Path) -> TrainingArguments:
    """Return the Trainer's arguments; raise an error if a tracker is not installed."""
    check_trackers(settings.report_to)
    return TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        lr_scheduler_type=_SCHEDULES[settings.schedule],
        warmup_steps=settings.warmup,
        seed=seed,
        bf16=precision == "bf16",
        fp16=precision == "fp16",
        use_cpu=not torch.accelerator.is_available(),
        logging_nan_inf_filter=False,
        save_strategy="no",
        disable_tqdm=True,
        report_to=list(settings.report_to),
        run_name=run_name(folder),
    )


def digest_of(mask: "Mask | None") -> str | None:
    """Return a short hash of a mask's content."""
    if mask is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for name, bits in sorted(mask.bits.items()):
        digest.update(name.encode() + bits.tobytes())
    return digest.hexdigest()


@contextmanager
def lent(model: PreTrainedModel, pad_id: int) -> Iterator[None]:
    """Lend the model to a Trainer, and afterwards undo all its changes except training.

    Meanwhile its padding token is that of the batches, by which decoders find the last token of a text.
    """
    if model.config.pad_token_id is None:
        model.config.pad_token_id = pad_id
    saved = [(owner, dict(vars(owner))) for owner in (model, model.config)]
    model.config.pad_token_id = pad_id
    try:
        yield
    finally:
        for owner, attributes in saved:
            vars(owner).clear()
            vars(owner).update(attributes)
        model.eval()
