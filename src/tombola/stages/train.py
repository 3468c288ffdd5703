"""Train a model on the task, under a mask or not: fine-tuning, a round of IMP, retraining a ticket."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from tombola.bias import read as read_bias
from tombola.controls import Control, apply_control
from tombola.masks import Mask, fingerprint
from tombola.models import copy_base, copy_head, load_model
from tombola.quiet import quiet
from tombola.stages import Job, stage
from tombola.stages.sources import load_split, pretrained, task_of, tokenizer_of
from tombola.stages.teacher import read_teacher
from tombola.store import WORK
from tombola.tasks import Encoded, collate_of, encode, fitting_length
from tombola.training import TrainSettings, train
from tombola.training.selective.freezing import FREEZING, Freezing

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MASK = "mask.safetensors"
EPOCHS = "epochs"
PREDICTIONS = {"bias": read_bias, "teacher": read_teacher}
"""What other models think of the training data, for losses that read it."""


@stage("train", version=1)
def run(job: Job) -> None:
    """Train, and leave an ordinary model folder with the mask beside it."""
    task, tokenizer, model = task_of(job), tokenizer_of(job), prepare(job)
    settings = TrainSettings(**{**job.settings["train"], **job.stage.unhashed})
    mask = Mask.load(job.inputs["mask"] / MASK) if "mask" in job.inputs else None
    log = train(
        model,
        training_data(job, settings, model),
        settings,
        collate=collate_of(task, tokenizer, job.settings["seed"]),
        seed=job.settings["seed"],
        precision=job.settings["precision"],
        folder=job.folder / WORK,
        mask=mask,
        stop_at=job.settings.get("stop_at"),
        progress=lambda step, steps, figures: job.progress(step, steps),
        on_epoch=_keeper(job) if job.settings.get("keep_epochs") else None,
    )
    if job.settings.get("keep_epochs"):
        (job.folder / WORK / EPOCHS).rename(job.folder / EPOCHS)
    if settings.select is not None:
        (job.folder / WORK / FREEZING).rename(job.folder / FREEZING)
    with quiet():
        model.save_pretrained(job.folder)
        tokenizer.save_pretrained(job.folder)
    if mask is not None:
        mask.save(job.folder / MASK)
    job.write_json("log.json", log.model_dump(mode="json"))


def training_data(job: Job, settings: TrainSettings, model: "PreTrainedModel") -> Encoded:
    """The task's training data, with what the loss reads besides: a bias model's and a teacher's predictions."""
    length = fitting_length(settings.max_length, model.config)
    data = encode(load_split(job.ref("data").where), tokenizer_of(job), length)
    for name, read in PREDICTIONS.items():
        if name in job.inputs:
            data = data.with_extra(name, read(job.inputs[name]).numpy())
    return data


def _keeper(job: Job) -> Callable[[int, "PreTrainedModel"], None]:
    """Keeps the model of every epoch, where it survives a kill, for curves over training."""

    def keep(epoch: int, model: "PreTrainedModel") -> None:
        with quiet():
            model.save_pretrained(job.folder / WORK / EPOCHS / str(epoch))

    return keep


def read_frozen(folder: Path) -> dict[str, Any] | None:
    """How often each tensor was not updated, where the training chose what to update."""
    if not (folder / FREEZING).is_file():
        return None
    found = Freezing.read(folder / FREEZING)
    return {"steps": found.steps, "tensors": found.tensors()}


def prepare(job: Job) -> "PreTrainedModel":
    """The model as it is before its first step: rewound to where this training starts, and masked.

    Everything is read from disk anew, so that no tensor of an earlier round can be mistaken for the
    rewind point.
    """
    task, seed = task_of(job), job.settings["seed"]
    model = pretrained(job, task, seed)
    base = fingerprint(model)
    if "start" in job.inputs:
        start = load_model(job.inputs["start"], task, seed)
        copy_base(start, model)
        if job.settings.get("head") != "fresh":
            copy_head(start, model)
    if "head" in job.inputs:
        copy_head(load_model(job.inputs["head"], task, seed), model)
    if "control" in job.settings:
        apply_control(TypeAdapter(Control).validate_python(job.settings["control"]), model, seed)
    if "mask" in job.inputs:
        mask = Mask.load(job.inputs["mask"] / MASK)
        mask.check(model, base=base)
        mask.apply(model)
    return model
