"""Shared training as a stage: one encoder, a head and a mask per task, and the scores of one task of the result."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.pipeline.running import execute
from tests.world import World
from tombola.errors import RecipeError
from tombola.masks import MASK, Mask, Units
from tombola.models.loading import load_model, load_tokenizer
from tombola.pipeline.plan import Plan
from tombola.pipeline.sharing import plan_share
from tombola.pipeline.stages.share import EvaluateShared, Share
from tombola.store.stage import topological_order
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.training.log import TrainLog
from tombola.training.multitask.model import open_task

TRAIN = {"steps": 6, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16}


def planned(world: World, folder: Path, **changes: Any) -> Plan:
    """The plan for the world's task and a copy of it under another name."""
    other = folder / "again.yaml"
    for split in ("train", "validation", "other"):
        shutil.copy(world.task.with_name(f"{split}.tsv"), folder)
    other.write_text(world.task.read_text().replace("name: tiny", "name: again"))
    return plan_share(
        {
            "name": "two",
            "model": str(world.model),
            "tasks": [str(world.task), str(other)],
            "precision": "fp32",
            "train": TRAIN,
            "single": {"steps": 2},
            "search": {"method": "magnitude", "units": "head"},
            "sparsity": 0.5,
            **changes,
        }
    )


def test_tasks_share_weights_and_are_scored_one_by_one(world: World, tmp_path: Path) -> None:
    plan = planned(world, tmp_path)
    shares = [one for one in plan.stages if isinstance(one, Share)]
    assert sorted(one.label for one in shares) == [
        "train 2 tasks with tickets",
        "train 2 tasks without tickets",
    ]
    stage = next(one for one in shares if one.masks)
    evaluations = [
        one for one in plan.stages if isinstance(one, EvaluateShared) and one.model.key == stage.key
    ]
    store = Store(tmp_path / "store")
    execute(topological_order(evaluations), store)
    log = store.read(stage)
    assert isinstance(log, TrainLog)
    assert log.steps == stage.training_steps() == 6
    folder = store.open(stage)
    first, second = open_task(folder, "tiny"), open_task(folder, "again")
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(first.base_model.get_parameter(name), second.base_model.get_parameter(name))
    for evaluation in evaluations:
        score = store.read(evaluation).scores["accuracy"]
        split = evaluation.data.load()
        model, tokenizer = open_task(folder, evaluation.task).eval(), load_tokenizer(folder)
        right = 0
        for (text,), label in zip(split.texts, split.labels, strict=True):
            with torch.no_grad():
                right += int(model(**tokenizer(text, return_tensors="pt")).logits.argmax()) == label
        assert score.value == pytest.approx(right / len(split))


@pytest.mark.parametrize("sampling", ["proportional", "annealed", "uniform"])
def test_the_planned_steps_are_those_of_the_training(world: World, tmp_path: Path, sampling: str) -> None:
    """The accumulated batches of a step come from one task, so each task ends with a step of fewer batches."""
    train = {"epochs": 1, "accumulate": 5, "batch_size": 16, "max_length": 16}
    small = {str(tmp_path / "again.yaml"): {"data": {"train": 5}}}
    sampled = {"kind": sampling}
    plan = planned(world, tmp_path, train=train, per_task=small, sampling=sampled)
    stage = next(one for one in plan.stages if isinstance(one, Share) and not one.masks)
    store = Store(tmp_path / "store")
    execute([stage], store)
    assert store.read(stage).steps == stage.training_steps()


def test_a_mask_of_a_head_cannot_be_shared(world: World, tmp_path: Path) -> None:
    model = load_model(world.model, Task.named(str(world.task)), seed=1)
    Mask.full(Units.of(model, "weight", classifier=True)).save(tmp_path / MASK)
    given = {"method": "given", "masks": [str(tmp_path / MASK)]}
    plan = planned(world, tmp_path, search=given)
    stage = next(one for one in plan.stages if isinstance(one, Share) and one.masks)
    with pytest.raises(RecipeError, match="the mask of tiny also covers the task head"):
        execute(topological_order([stage]), Store(tmp_path / "store"))


def test_tasks_scored_by_likelihood_cannot_be_shared(world: World, tmp_path: Path) -> None:
    likely = {"task_settings": {"by": "likelihood", "prompt": "{sentence}"}}
    with pytest.raises(RecipeError, match="tasks: tiny is scored by likelihood"):
        planned(world, tmp_path, data=likely)
