"""One training run: from a model, encoded data and settings to the trained model and its log."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel, TrainerCallback, TrainingArguments
from transformers.integrations import get_available_reporting_integrations
from transformers.trainer_callback import PrinterCallback

from tombola.errors import TombolaError
from tombola.objectives import Objective
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.quiet import quiet
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import Checkpoints, step_of
from tombola.training.course import Course, EpochHook, Progress
from tombola.training.dropout import dropout_of
from tombola.training.keep_mask import KeepMask
from tombola.training.log import TrainLog, curve, logging_interval
from tombola.training.optimizers import optimizer_of
from tombola.training.precision import Precision
from tombola.training.settings import TrainSettings
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.masks import Mask
    from tombola.tasks import Collate, Encoded

_SCHEDULES = {"linear": "linear", "constant": "constant_with_warmup", "cosine": "cosine"}


def train(
    model: PreTrainedModel,
    data: "Encoded",
    settings: TrainSettings,
    *,
    collate: "Collate",
    seed: int,
    precision: Precision,
    folder: Path,
    mask: "Mask | None" = None,
    objective: Objective | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    stop_at: int | None = None,
    progress: Progress | None = None,
    on_epoch: EpochHook | None = None,
) -> TrainLog:
    """Train `model` in place, under `mask` if given, going on from the last checkpoint in `folder`.

    Equal arguments give bit-equal weights and curves on one machine, whether the run was killed in between or
    not. `stop_at` ends after so many optimizer steps of the full run's schedule (late rewinding).
    """
    if stop_at is not None and stop_at < 1:
        raise TombolaError(f"stop_at takes a step from 1 on, not {stop_at}: before it nothing is trained")
    batches = ShuffledBatches(data.lengths, settings.batch_size, seed, settings.group_by_length)
    run = {**_identity(settings, data, mask), "seed": seed, "precision": precision, "stop_at": stop_at}
    checkpoints = Checkpoints(folder / "checkpoints", run)
    resumed = checkpoints.last()
    course = Course(batches, collate, settings.checkpoint_minutes, stop_at, progress, on_epoch)
    keep = [KeepMask(mask)] if mask is not None else []
    with quiet(), _lent(model, collate.pad_id), dropout_of(model, settings.dropout):
        arguments = _arguments(settings, seed, precision, folder)
        arguments._n_gpu = min(arguments.n_gpu, 1)  # a process drives one device; no DataParallel
        arguments.max_steps = total_steps(settings, len(batches), arguments.world_size)
        arguments.logging_steps = logging_interval(arguments.max_steps)
        trainer = ObjectiveTrainer(
            model,
            arguments,
            objective=objective or CrossEntropy(),
            batches=batches,
            checkpoints=checkpoints,
            train_dataset=data,
            data_collator=collate,
            optimizer_cls_and_kwargs=optimizer_of(settings),
            callbacks=[*keep, *callbacks, course],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train(resume_from_checkpoint=str(resumed) if resumed else None)
        finally:
            for callback in keep:
                callback.release()
    return TrainLog(
        steps=trainer.state.global_step,
        epochs=trainer.state.epoch,
        precision=precision,
        curve=curve(trainer.state.log_history),
        seconds=trainer.seconds,
        examples_per_second=trainer.examples / (trainer.seconds - trainer.seconds_before),
        resumed_from=step_of(resumed) if resumed else None,
    )


def total_steps(settings: TrainSettings, batches: int, processes: int = 1) -> int:
    """Optimizer steps of the whole schedule, for so many batches an epoch shared by so many processes."""
    if settings.steps is not None:
        return settings.steps
    return math.ceil(settings.epochs * math.ceil(math.ceil(batches / processes) / settings.accumulate))


def _arguments(settings: TrainSettings, seed: int, precision: Precision, folder: Path) -> TrainingArguments:
    trackers = get_available_reporting_integrations()
    missing = [name for name in settings.report_to if name not in trackers]
    if missing:
        here = ", ".join(trackers) or "none"
        raise TombolaError(f"report_to: {missing[0]!r} is not installed; trackers that are: {here}")
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
        use_cpu=not torch.accelerator.is_available(),
        logging_nan_inf_filter=False,
        save_strategy="no",
        disable_tqdm=True,
        report_to=settings.report_to,
    )


def _identity(settings: TrainSettings, data: "Encoded", mask: "Mask | None") -> dict[str, Any]:
    """What a checkpoint must agree with to be resumed from."""
    digest = hashlib.blake2b(digest_size=16)
    for name, bits in sorted(mask.bits.items()) if mask is not None else ():
        digest.update(name.encode() + bits.tobytes())
    return {
        **settings.model_dump(mode="json", exclude=set(settings.unhashed)),
        "examples": len(data),
        "tokens": int(data.lengths.sum()),
        "mask": digest.hexdigest() if mask is not None else None,
    }


@contextmanager
def _lent(model: PreTrainedModel, pad_id: int) -> Iterator[None]:
    """Lend the model to a Trainer, and undo afterwards what that does to it besides training it."""
    if model.config.pad_token_id is None:
        model.config.pad_token_id = pad_id
    saved = [(owner, dict(vars(owner))) for owner in (model, model.config)]
    try:
        yield
    finally:
        for owner, attributes in saved:
            vars(owner).clear()
            vars(owner).update(attributes)
        model.eval()
