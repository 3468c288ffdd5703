"""Three toy tasks on one tiny encoder: two classes, three classes, and a real number."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tests.tiny import tiny
from tests.training.toy import TOKENIZER, random_mask, toy_data
from tombola.masks import Mask
from tombola.tasks import Encoded, Task
from tombola.training import TrainLog, TrainSettings
from tombola.training.multitask.batches import MixedCollate
from tombola.training.multitask.model import SharedModel
from tombola.training.multitask.sampling import PROPORTIONAL, Sampling
from tombola.training.multitask.training import train_shared

SIZES = (40, 24, 12)


def toy_task(name: str, labels: list[str] | None) -> Task:
    """A task with this name and these labels; a regression without."""
    return Task(
        name=name,
        version=1,
        kind="regression" if labels is None else "classification",
        text="text",
        labels=labels,
        metrics=["pearson"] if labels is None else ["accuracy"],
        source={"files": {"train": "train.tsv"}},
    )


TASKS = [toy_task("two", ["a", "b"]), toy_task("three", ["a", "b", "c"]), toy_task("number", None)]
COLLATE = MixedCollate(TASKS, TOKENIZER)


def toy_parts(sizes: Sequence[int] = SIZES) -> list[Encoded]:
    """The data of the three tasks."""
    two, three = toy_data(sizes[0], seed=0), toy_data(sizes[1], seed=1)
    three = replace(three, labels=three.inputs["input_ids"][three.offsets[:-1]].astype("int64") % 3)
    return [two, three, toy_data(sizes[2], regression=True, seed=2)]


def shared(model_type: str = "bert", **options: Any) -> SharedModel:
    """The three tasks' models over the first one's encoder."""
    return SharedModel(
        [tiny(model_type, num_labels=labels, seed=labels, **options) for labels in (2, 3, 1)]
    ).eval()


def toy_masks(model: SharedModel, granularity: str = "head") -> list[Mask]:
    """A mask for each task, all different."""
    return [random_mask(model.models[0], granularity, kept=0.5, seed=seed) for seed in range(3)]


def toy_share(
    model: SharedModel,
    folder: Path,
    parts: Sequence[Encoded] | None = None,
    seed: int = 1,
    sampling: Sampling = PROPORTIONAL,
    masks: Sequence[Mask] | None = None,
    progress: Any = None,
    **settings: Any,
) -> TrainLog:
    """Train the toy tasks."""
    options = {"epochs": 2, "batch_size": 8, "learning_rate": 1e-2, "checkpoint_minutes": 999.0, **settings}
    return train_shared(
        model,
        parts if parts is not None else toy_parts(),
        TrainSettings(**options),
        collate=COLLATE,
        seed=seed,
        precision="fp32",
        folder=folder,
        sampling=sampling,
        masks=masks,
        progress=progress,
    )


def snapshot(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """A copy of all weights, each once."""
    return {name: value.detach().clone() for name, value in model.named_parameters()}
