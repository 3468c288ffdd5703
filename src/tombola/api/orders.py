"""Turn the arguments of `compress` into a recipe."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from tombola.api.order_checks import (
    OF_TIME,
    TARGETS,
    changed_keys,
    check_cells,
    check_epochs,
    check_order,
    check_sections,
    check_values,
    given_targets,
)
from tombola.api.robustness import drop_idle_typos, set_robustness, swap_words, training_texts
from tombola.api.truncation import about_truncation
from tombola.api.unlabelled import texts_to_label
from tombola.attacks.resources import ENCODER, Resources
from tombola.errors import TombolaError
from tombola.foundations.settings import checked
from tombola.models.finding import find_folder
from tombola.recipe.builtin import find_recipe
from tombola.recipe.reading import Raw, load_recipe
from tombola.recipe.sections import AttackSettings
from tombola.tasks import Task, task_names
from tombola.tasks.inferring import ENDINGS, infer_task
from tombola.tasks.lines import ending_of
from tombola.training.settings import TrainSettings

logger = logging.getLogger(__name__)

ENOUGH_STEPS = 1500
"""The steps that a ticket should be trained for; if the texts are few, epochs are added to the default recipe."""
ORIGINAL_STEPS = 300
"""The steps that a pre-trained model should be fine-tuned for, to be a fair original and a good teacher."""
MOST_EPOCHS = 20
"""The most epochs then."""


@dataclass(frozen=True)
class Order:
    """The arguments of `compress`, which documents them. What is None is left to the recipe."""

    model: str
    data: str
    speedup: float | None = None
    fastest: bool = False
    latency: float | None = None
    parameters: float | None = None
    within: float = 1.0
    against: tuple[str, ...] | None = None
    batch_size: tuple[int, ...] | None = None
    threads: int | None = None
    device: str | None = None
    seconds: float | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    unlabelled: str | None = None
    recipe: str = "compress/default"
    overrides: tuple[str, ...] = ()


def plan_compression(order: Order) -> tuple[Raw, tuple[str, ...]]:
    """Return the recipe that `compress` follows, and notes on what was inferred; write a task file for a data file.

    Args:
        order: The arguments of `compress`.
    """
    from tombola.api.original import idle_training

    changed = changed_keys(order.overrides)
    check_order(order, changed)
    recipe = load_recipe(find_recipe(order.recipe))
    raw = load_recipe(recipe, order.overrides)
    check_sections(raw, order.recipe)
    if "variants" not in changed:  # defend=… is about the ticket
        original = recipe["variants"]["original"]
        kept = {name: original[name] for name in ("defend",) if name in original}
        raw["variants"] = {**raw["variants"], "original": {**raw["variants"]["original"], **kept}}
    task, notes = _task_of(order.data, order.text, order.label)
    same_task = raw.get("task") == task
    named = {"name": f"compress-{Task.named(task).name}"}
    named["pooler"] = "new" if _is_sentence_encoder(order.model) else "own"
    raw |= {"model": order.model, "task": task}
    raw |= {key: value for key, value in named.items() if key not in changed}
    check_values(raw)
    _set_targets(raw, order, changed)
    if order.device not in (None, "cpu") and "runtime" not in changed:
        raw["runtime"] = "transformers"
        notes += (f"ONNX is skipped: it would run on the cpu, but the target device is {order.device}",)
    if order.against is not None:
        set_robustness(raw, order.against)
    typos = drop_idle_typos(raw)
    more = 0
    if order.unlabelled is not None:
        more = len(texts_to_label(raw, order.unlabelled))
        notes += (f"unlabelled texts that are not in the data: {more:,}, to be labelled by the original",)
    if order.recipe == Order.recipe:
        notes += _train_enough(raw, order, changed, more)
    notes += idle_training(order.model, Task.named(task), changed)
    if "synonyms" in (order.against or ()):
        notes += swap_words(raw, Task.named(task), changed)
    notes += _in_language(raw, Task.named(task))
    if not same_task:
        _set_evaluation(raw, Task.named(task), changed, typos=typos)
    check_cells(raw)
    if order.seconds is not None:
        check_epochs(raw)
    return raw, (*notes, *about_truncation(raw, training_texts(raw)))


def _task_of(data: str | Path, text: tuple[str, ...], label: str | None) -> tuple[str, tuple[str, ...]]:
    path = Path(data)
    if ending_of(path) in ENDINGS or (path.is_dir() and str(data) not in task_names()):
        inferred = infer_task(path, text, label)
        notes = (f"task file: {inferred.path}",) if inferred.new else ()
        return str(inferred.path), (*inferred.notes, *notes)
    if text or label:
        raise TombolaError(
            f"--text and --label are for data files; {data} is a task, which defines its own columns"
        )
    return str(data), ()


def _is_sentence_encoder(model: str) -> bool:
    """Return whether a model's pooler is untrained: sentence-transformers average the token vectors instead."""
    folder = find_folder(model)
    return (folder / "modules.json").is_file() or model == "minilm"


def _set_targets(raw: Raw, order: Order, changed: Collection[str]) -> None:
    """Set the targets of the draw and the timing that goes with them."""
    given = given_targets(order)
    chosen = given or {name: raw["draw"].get(name) for name in TARGETS if f"draw.{name}" in changed}
    targets = chosen or {name: raw["draw"].get(name) for name in TARGETS}
    draw = {name: value for name, value in raw["draw"].items() if name not in TARGETS}
    draw |= {name: value for name, value in targets.items() if value is not None or order.fastest}
    timing: Raw = {"threads": order.threads, "device": order.device}
    timing = {name: value for name, value in timing.items() if value is not None}
    measure = {**(raw.get("measure") or {}), **timing}
    if "speedup" in draw or "latency" in draw:
        draw |= timing
        if order.batch_size is not None:
            draw["batch_size"] = list(order.batch_size)
        elif "latency" in chosen and "draw.batch_size" not in changed:
            draw["batch_size"] = [1]
    else:
        draw = {
            name: value for name, value in draw.items() if name not in OF_TIME or f"draw.{name}" in changed
        }
    if order.batch_size is not None:
        measure["batch_sizes"] = sorted({*measure.get("batch_sizes", ()), *order.batch_size})
    raw["draw"] = draw
    if raw.get("measure") is not None or "measure" not in changed:
        raw["measure"] = measure


def _train_enough(raw: Raw, order: Order, changed: set[str], more: int) -> tuple[str, ...]:
    """Add epochs if the texts are few, so that the original and the ticket get enough steps; for it not with `--time`.

    Args:
        raw: The recipe, which is changed.
        order: The arguments of `compress`.
        changed: The keys that its overrides set.
        more: The number of unlabelled texts, which only the ticket is trained on.
    """
    from tombola.api.original import is_finetuned

    task, texts = Task.named(raw["task"]), _count_texts(raw)
    notes: tuple[str, ...] = ()
    if not changed & {"train.epochs", "train.steps"} and not is_finetuned(order.model, task):
        notes += _lengthen(raw["train"], "the original", raw["train"], texts, ORIGINAL_STEPS)
    if order.seconds is None and not changed & {"retrain.epochs", "retrain.steps"}:
        training = {**raw["train"], **raw["retrain"]}
        notes += _lengthen(raw["retrain"], "the ticket", training, texts + more, ENOUGH_STEPS)
    return notes


def _lengthen(section: Raw, who: str, training: Raw, texts: int, enough: int) -> tuple[str, ...]:
    """Set the epochs of a section of the recipe such that a training on these texts has enough steps; return a note."""
    steps = ceil(texts / training.get("batch_size", TrainSettings().batch_size))
    epochs = min(MOST_EPOCHS, ceil(enough / steps))
    if not training.get("epochs") or epochs <= training["epochs"]:
        return ()
    section["epochs"] = epochs
    return (
        f"{who} is trained for {epochs} epochs, since an epoch has only {steps:,} {'step' if steps == 1 else 'steps'}",
    )


def _count_texts(raw: Raw) -> int:
    """Count the training texts that the recipe uses."""
    count = len(training_texts(raw))
    limit = (raw.get("data") or {}).get("train")
    return min(count, limit) if limit else count


def _in_language(raw: Raw, task: Task) -> tuple[str, ...]:
    """If the texts are not English, leave out what only knows English words; return notes on what was left out."""
    if task.english:
        return ()
    raw["defend"] = [
        {"kind": "spelling", "dictionary": None} if defense == "spelling" else defense
        for defense in raw.get("defend") or ()
    ]
    notes = [f"language: {task.language}; the spelling corrector only knows the words of the training texts"]
    if raw.get("attack"):
        known = checked(AttackSettings, raw["attack"], "attack")
        resources = Resources(
            known.vectors, known.encoder or ENCODER, words=known.lexicon, language=task.language
        )
        left = [attack for attack in known.recipes if not resources.missing(attack)]
        if out := [attack.label for attack in known.recipes if attack not in left]:
            notes.append(f"{', '.join(out)}: skipped, since the package only has English words")
            attacks = {
                "recipes": [
                    attack.model_dump(exclude_defaults=True) | {"name": attack.name} for attack in left
                ]
            }
            raw["attack"] = {**raw["attack"], **attacks} if left else None
    return tuple(notes)


def _set_evaluation(raw: Raw, task: Task, changed: Collection[str], *, typos: bool) -> None:
    """Evaluate on the task's reported split, on the same split with typos, and on the task's companions."""
    split = task.default_split
    on = [split]
    if typos and (task.single_label or task.kind == "regression"):
        on.append(f"{split}+typos")
    companions = [name for name in ("ood", "adversarial") if getattr(task.companions, name)]
    if "evaluate.on" not in changed:
        raw["evaluate"] = {**(raw.get("evaluate") or {}), "on": [*on, *companions]}
    if raw.get("attack") and not task.single_label:
        raw["attack"] = None
    elif raw.get("attack") and "attack.on" not in changed:
        raw["attack"] = {**raw["attack"], "on": split}
