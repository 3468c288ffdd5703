"""The original of a compression: a fine-tuned classifier, or a pre-trained model that is fine-tuned first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tombola.api.choosing import with_any_speedup
from tombola.api.running import plan_recipe
from tombola.errors import TombolaError
from tombola.foundations.settings import checked
from tombola.models.finding import find_folder
from tombola.models.safety import open_config, read_config
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.plan import Plan
from tombola.pipeline.runner import run_plan
from tombola.pipeline.watching import Watcher
from tombola.recipe.reading import Raw
from tombola.recipe.recipe import Recipe
from tombola.store.stage import Stage
from tombola.store.store import Store
from tombola.tasks import Task
from tombola.tasks.label_values import some

ORIGINAL = "original.json"
"""Name under which the store keeps the original's training while a compression runs."""
DENSE = ("model", "pooler", "task", "seed", "train", "data", "bias", "precision")
"""The recipe's sections that define how the original is trained."""


def is_finetuned(model: str, task: Task) -> bool:
    """Return whether a model is a classifier with a trained head; raise if its outputs do not fit the task.

    Args:
        model: A folder or a hub id.
        task: The task.
    """
    from tombola.evaluation.labels import label_order

    folder = find_folder(model)
    config = read_config(folder)
    names = config.get("architectures") or [""]
    if not str(names[0]).endswith("ForSequenceClassification"):
        return False
    outputs = len(config.get("id2label") or {}) or 2
    if outputs != task.num_labels:
        own = (
            "has a single output, as for regression"
            if outputs == 1
            else f"is a classifier with {outputs} outputs"
        )
        needed = f"has {task.num_labels} labels ({some(task.labels)})" if task.labels else "predicts a number"
        raise TombolaError(
            f"{model} {own}, but {task.name} {needed}: use a model that was fine-tuned for this task, or a pre-trained "
            "model"
        )
    label_order(open_config(folder), task)
    return True


def idle_training(model: str, task: Task, changed: set[str]) -> tuple[str, ...]:
    """Return a note if overrides set how long the original is trained, but it is fine-tuned already.

    Args:
        model: A folder or a hub id.
        task: The task.
        changed: The keys that the overrides set.
    """
    idle = sorted(changed & {"train.epochs", "train.steps"})
    if not idle or not is_finetuned(model, task):
        return ()
    return (
        f"{', '.join(idle)}: not used, since {model} is fine-tuned already; for the ticket, set retrain.epochs",
    )


def fine_tuned(
    raw: Raw, store: Store, folder: Path, engine: Local | Ray | None, watcher: Watcher | None
) -> tuple[Raw, Sequence[Stage[Any]], Raw]:
    """Return the recipe with a fine-tuned classifier as its model, after fine-tuning the model if it is not one.

    Also return the stages of that fine-tuning: the recipe refers to the trained model by path, so the store would not
    know otherwise that it must keep it. And return the sections that the path and the end of the training replaced.

    Args:
        raw: The recipe of a compression.
        store: The store of finished stages.
        folder: The output of the compression.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
    """
    if is_finetuned(raw["model"], Task.named(raw["task"])):
        return untrained(raw), (), {}
    plan = plan_original(raw)
    plan_recipe(with_any_speedup(untrained(raw)))  # a mistake in what follows shows before the training
    run_plan(plan, store, folder / ORIGINAL, engine=engine, watcher=watcher)
    origin: Raw = {name: raw[name] for name in ("model", "pooler", "train") if name in raw}
    return untrained({**raw, "model": str(store.open(plan.cells[0].model))}), plan.stages, origin


def plan_original(raw: Raw) -> Plan:
    """Return the plan of fine-tuning the original.

    Args:
        raw: The recipe of a compression.
    """
    dense: Raw = {name: raw[name] for name in DENSE if name in raw}
    if not checked(Recipe, dense).uses_bias:  # the bias model is then the ticket's alone
        dense.pop("bias", None)
    return plan_recipe({**dense, "name": f"{raw['name']}-original", "evaluate": {"on": []}})


def untrained(raw: Raw) -> Raw:
    """Return the recipe whose model is the original itself, with its own pooler and without further training.

    Args:
        raw: The recipe of a compression.
    """
    train = {name: value for name, value in (raw.get("train") or {}).items() if name != "steps"}
    return {**raw, "pooler": "own", "train": {**train, "epochs": 0}}
