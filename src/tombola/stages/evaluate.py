"""Score a trained model on one data set, and keep its predictions so that later questions need no second pass."""

import json
import logging
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.torch import save_file

from tombola.evaluation import evaluate_split, leakage_note
from tombola.masks import Mask
from tombola.models import load_model, load_tokenizer
from tombola.stages import Job, stage
from tombola.stages.sources import load_split
from tombola.stages.train import MASK
from tombola.tasks import Task

logger = logging.getLogger(__name__)

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

PREDICTIONS = "predictions.safetensors"


@stage("evaluate", version=1)
def run(job: Job) -> None:
    """Evaluate the model of the input stage, under the mask of another if that is given."""
    folder = job.inputs["model"]
    model = load_model(folder, Task.named(job.ref("trained").where["task"]), seed=0)
    if "mask" in job.inputs:
        Mask.load(job.inputs["mask"] / MASK).apply(model)
    judge(job, model, load_tokenizer(folder))


def judge(job: Job, model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase") -> None:
    """Score a model on the job's data; keep the scores and the predictions that they come from."""
    split = load_split(job.ref("data").where)
    result = evaluate_split(
        model,
        tokenizer,
        split,
        max_length=job.settings["max_length"],
        precision=job.settings["precision"],
    )
    save_file(
        {"predictions": torch.from_numpy(np.ascontiguousarray(result.predictions))}, job.folder / PREDICTIONS
    )
    notes = list(result.notes)
    if leak := leakage_note(load_split(job.ref("trained").where), split):
        notes.append(leak)
    for note in notes:
        _warn(note)
    scores = {name: score.as_dict() for name, score in result.scores.items()}
    job.write_json("scores.json", {"scores": scores, "notes": notes, "source": split.source})


@cache
def _warn(note: str) -> None:
    """Once, however many models are scored on the same data."""
    logger.warning("%s", note)


def read_scores(folder: Path) -> dict[str, Any]:
    """What an evaluation found: a score with its standard error for each metric."""
    return json.loads((folder / "scores.json").read_text())["scores"]
