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
from tombola.foundations.hardware import Precision
from tombola.foundations.quiet import quiet
from tombola.objectives import Objective
from tombola.objectives.building import objective_of
from tombola.training.batches import ShuffledBatches
from tombola.training.checkpoints import Checkpoints, step_of
from tombola.training.course import Course, EpochHook, Progress
from tombola.training.dropout import dropout_of
from tombola.training.keep_mask import KeepMask
from tombola.training.log import TrainLog, curve, logging_interval
from tombola.training.optimizers import optimizer_of
from tombola.training.schedule import total_steps
from tombola.training.selective.building import selective
from tombola.training.selective.callback import KeepFreezing
from tombola.training.selective.freezing import FREEZING
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
    batches: ShuffledBatches | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    stop_at: float | None = None,
    progress: Progress | None = None,
    on_epoch: EpochHook | None = None,
) -> TrainLog:
    """Train `model` in place, under `mask` if given, going on from the last checkpoint in `folder`.

    Equal arguments give bit-equal weights and curves on one machine, whether the run was killed in between or
    not. `stop_at` ends after so many optimizer steps of the full run's schedule (late rewinding), or after a
    share of them if below 1.
    """
    if stop_at is not None and stop_at <= 0:
        raise TombolaError(f"stop_at takes a step from 1 on or a share of all, not {stop_at}")
    if total_steps(settings, 1) == 0:
        return TrainLog.untrained(precision)
    if batches is None:
        batches = ShuffledBatches(data.lengths, settings.batch_size, seed, settings.group_by_length)
    run = {**identity_of(settings, data, mask), "seed": seed, "precision": precision, "stop_at": stop_at}
    checkpoints = Checkpoints(folder / "checkpoints", run)
    resumed = checkpoints.last()
    keep = [KeepMask(mask)] if mask is not None else []
    with quiet(), lent(model, collate.pad_id), dropout_of(model, settings.dropout):
        arguments = arguments_of(settings, seed, precision, folder)
        arguments._n_gpu = min(arguments.n_gpu, 1)  # a process drives one device; no DataParallel
        arguments.max_steps = total_steps(settings, len(batches), arguments.world_size)
        arguments.logging_steps = logging_interval(arguments.max_steps)
        end = math.ceil(stop_at * arguments.max_steps) if stop_at is not None and stop_at < 1 else stop_at
        course = Course(batches, collate, settings.checkpoint_minutes, end, progress, on_epoch)
        objective = objective or objective_of(settings.loss, settings.adversary, settings.r_drop)
        optimizer = optimizer_of(settings)
        if settings.select is not None:
            optimizer, objective = selective(settings, model, objective, seed, arguments.world_size)
            callbacks = [*callbacks, KeepFreezing(folder / FREEZING)]
        trainer = ObjectiveTrainer(
            model,
            arguments,
            objective=objective,
            batches=batches,
            checkpoints=checkpoints,
            train_dataset=data,
            data_collator=collate,
            optimizer_cls_and_kwargs=optimizer,
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


def arguments_of(settings: TrainSettings, seed: int, precision: Precision, folder: Path) -> TrainingArguments:
    """The Trainer's own arguments; a tracker that is not installed is refused."""
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
        report_to=list(settings.report_to),
    )


def identity_of(settings: TrainSettings, data: "Encoded", mask: "Mask | None") -> dict[str, Any]:
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
def lent(model: PreTrainedModel, pad_id: int) -> Iterator[None]:
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
