"""One training run: from a model, encoded data and settings to the trained model and its log."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import PreTrainedModel, TrainerCallback

from tombola.foundations.hardware import Precision
from tombola.objectives import Objective
from tombola.training.attacked import attacking
from tombola.training.course import Evaluation, Progress
from tombola.training.keep_mask import KeepMask
from tombola.training.log import TrainLog
from tombola.training.loop import Batching, TrainingRun, digest_of, run_loop
from tombola.training.optimizers import optimizer_of
from tombola.training.selective.building import selective
from tombola.training.selective.callback import KeepFreezing
from tombola.training.selective.freezing import FREEZING
from tombola.training.settings import TrainSettings
from tombola.training.teaching import taught
from tombola.training.trainer import ObjectiveTrainer

if TYPE_CHECKING:
    from tombola.masks import Mask
    from tombola.tasks import Collate, Encoded


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
    teacher: PreTrainedModel | None = None,
    batches: Batching | None = None,
    callbacks: Sequence[TrainerCallback] = (),
    stop_at: float | None = None,
    progress: Progress | None = None,
    evaluations: Sequence[Evaluation] = (),
) -> TrainLog:
    """Train `model` in place, under `mask` if given, resuming from the last checkpoint in `folder`.

    On one machine, equal arguments give bit-equal weights and curves, whether or not the run was interrupted.
    `stop_at` stops after that optimizer step of the full schedule (late rewinding), or after that fraction of it if
    below 1. `teacher` is the teacher for `settings.distill`. The other arguments are as in `TrainingRun` and
    `run_loop`.
    """
    run = TrainingRun(
        data, settings, collate, seed, precision, folder, stop_at, progress, evaluations, batches
    )
    with taught(model, run, teacher) as (usual, ask_teacher):
        objective = objective or usual
        optimizer = optimizer_of(settings)
        if settings.select is not None:
            optimizer, objective = selective(settings, model, objective, seed)
            callbacks = [*callbacks, KeepFreezing(folder / FREEZING)]
        keep = KeepMask(mask) if mask is not None else None
        try:
            return run_loop(
                model,
                run,
                trainer=ObjectiveTrainer,
                objective=ask_teacher(objective),
                optimizer=optimizer,
                identity={"mask": digest_of(mask)},
                log=TrainLog,
                callbacks=[*([keep] if keep is not None else []), *callbacks, *attacking(run)],
            )
        finally:
            if keep is not None:
                keep.release()
