"""Turn the arguments of `compress` into a recipe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tombola.attacks.resources import ENCODER, Resources
from tombola.augmentations import Typos
from tombola.augmentations.reach import unchanged_by, why_unchanged
from tombola.errors import TombolaError
from tombola.foundations.hardware.machine import check_device
from tombola.foundations.settings import checked
from tombola.models.finding import find_folder
from tombola.recipe.builtin import find_recipe
from tombola.recipe.reading import Raw, load_recipe
from tombola.recipe.sections import AttackSettings
from tombola.tasks import Split, Task, kind_of
from tombola.tasks.inferring import ENDINGS, infer_task
from tombola.tasks.lines import ending_of

logger = logging.getLogger(__name__)

AGAINST = {
    "typos": {"augment": "typos", "defend": ["unicode", "spelling"]},
    "synonyms": {"augment": "synonyms", "defend": []},
}
"""What a ticket can withstand: the augmentation it is trained on, and the defences that correct its inputs."""
ATTACKED = 1000
"""The most training texts that TextFooler attacks in each epoch of a ticket that should withstand synonyms."""
ATTACKED_SHARE = 0.15
"""The largest share of the training texts to attack."""


@dataclass(frozen=True)
class Order:
    """The arguments of `compress`, which documents them."""

    model: str
    data: str
    speedup: float | None = 2.0
    latency: float | None = None
    parameters: float | None = None
    within: float = 1.0
    against: tuple[str, ...] = ("typos",)
    batch_size: tuple[int, ...] = (1, 32)
    threads: int | None = None
    device: str = "cpu"
    seconds: float | None = None
    text: tuple[str, ...] = ()
    label: str | None = None
    recipe: str = "compress/default"
    overrides: tuple[str, ...] = ()


def plan_compression(order: Order) -> tuple[Raw, tuple[str, ...]]:
    """Return the recipe that `compress` follows, and notes on what was inferred; write a task file for a data file.

    Args:
        order: The arguments of `compress`.
    """
    check_device(order.device)
    task, notes = _task_of(order.data, order.text, order.label)
    raw = load_recipe(find_recipe(order.recipe), order.overrides)
    same_task = raw.get("task") == task
    raw |= {"model": order.model, "task": task, "name": f"compress-{Task.named(task).name}"}
    raw["pooler"] = "new" if _is_sentence_encoder(order.model) else "own"
    _aim(raw, order)
    if order.device != "cpu":
        notes += (f"ONNX is left out: it would run on the cpu, and the target is {order.device}",)
    against = _possible(order.against, raw)
    _withstand(raw, against)
    if "synonyms" in against:
        notes += _attack_in_training(raw, Task.named(task), order)
    notes += _in_language(raw, Task.named(task))
    if not same_task:
        _judged_on(raw, Task.named(task), typos=against == order.against)
    return raw, notes


def _task_of(data: str | Path, text: tuple[str, ...], label: str | None) -> tuple[str, tuple[str, ...]]:
    path = Path(data)
    if ending_of(path) in ENDINGS:
        found = infer_task(path, text, label)
        return str(found.path), (*found.notes, *([f"task file: {found.path}"] if found.new else []))
    if text or label:
        raise TombolaError(
            f"--text and --label are for data files; {data} is a task, which names its columns itself"
        )
    return str(data), ()


def _is_sentence_encoder(model: str) -> bool:
    """Return whether a model's pooler is untrained: sentence-transformers average the token vectors instead."""
    folder = find_folder(model)
    return (folder / "modules.json").is_file() or model == "minilm"


def _aim(raw: Raw, order: Order) -> None:
    """Set the targets of the draw and the timing that goes with them."""
    targets: dict[str, float | None] = {"latency": order.latency, "parameters": order.parameters}
    given = {name: value for name, value in targets.items() if value is not None}
    if len(given) > 1:
        raise TombolaError(
            "--latency and --parameters both say how small the ticket is: leave out one of them"
        )
    draw = {
        name: value for name, value in raw["draw"].items() if name not in ("speedup", "latency", "parameters")
    }
    timed = "parameters" not in given
    if timed:
        draw["batch_size"] = list(order.batch_size)
        if order.threads is not None:
            draw["threads"] = order.threads
        if order.device != "cpu":
            draw["device"] = order.device
    else:
        draw.pop("batch_size", None)
    raw["draw"] = {**draw, **(given or {"speedup": order.speedup})}
    sizes = (raw.get("measure") or {}).get("batch_sizes", [])
    raw["measure"] = {"batch_sizes": sorted({*sizes, *order.batch_size})}
    if order.device != "cpu":
        raw["measure"]["device"] = order.device
        raw["runtime"] = "transformers"


def _possible(against: tuple[str, ...], raw: Raw) -> tuple[str, ...]:
    """Return what a ticket can be made to withstand on its data: typos are not available for every script."""
    task = Task.named(raw["task"])
    if "typos" not in against or not kind_of(task).reads_whole_texts:
        return against
    split = _training_texts(raw)
    unchanged = unchanged_by([Typos()], split)
    if not unchanged:
        return against
    logger.warning("--against typos is left out: %s", why_unchanged(unchanged, split))
    return tuple(name for name in against if name not in unchanged)


def _withstand(raw: Raw, against: Sequence[str]) -> None:
    """Set the augmentations that the ticket is trained on and the defences that correct its inputs."""
    unknown = [name for name in against if name not in AGAINST]
    if unknown:
        raise TombolaError(f"--against {unknown[0]}: a ticket can be made to withstand {', '.join(AGAINST)}")
    kinds = [AGAINST[name]["augment"] for name in against]
    raw["defend"] = list(dict.fromkeys(one for name in against for one in AGAINST[name]["defend"]))
    for part in (raw["search"], raw["retrain"]):
        if kinds:
            part["augment"] = {**(part.get("augment") or {}), "of": kinds}
        else:
            part.pop("augment", None)
    if not kinds:
        raw["search"]["inputs"] = "clean"


def _attack_in_training(raw: Raw, task: Task, order: Order) -> tuple[str, ...]:
    """Train the ticket on texts that TextFooler finds as it goes: random synonyms alone do not help against it."""
    if raw["retrain"].get("adversary") or not task.single_label or not task.english:
        return ()
    if order.seconds is not None:
        return (
            "against synonyms: trained on random synonyms alone; without --time, also on those that TextFooler finds, "
            "whose time cannot be foreseen",
        )
    count = len(_training_texts(raw))
    if limit := (raw.get("data") or {}).get("train"):
        count = min(count, limit)
    share = min(ATTACKED_SHARE, ATTACKED / count)
    attack = {"kind": "attack", "recipe": "textfooler", "share": float(f"{share:.2g}"), "after": 1}
    raw["retrain"]["adversary"] = attack
    return (
        f"against synonyms: TextFooler attacks {share:.2g} of the training texts in every epoch but the first",
    )


def _training_texts(raw: Raw) -> Split:
    folder = (raw.get("data") or {}).get("folder")
    return Task.named(raw["task"]).load("train", folder=Path(folder).expanduser() if folder else None)


def _in_language(raw: Raw, task: Task) -> tuple[str, ...]:
    """If the texts are not English, leave out what only knows English words; return notes on what was left out."""
    if task.english:
        return ()
    raw["defend"] = [
        {"kind": "spelling", "dictionary": None} if one == "spelling" else one for one in raw["defend"]
    ]
    notes = [f"language: {task.language}; the spelling corrector knows the words of the training texts alone"]
    if raw.get("attack"):
        known = checked(AttackSettings, raw["attack"], "attack")
        resources = Resources(
            known.vectors, known.encoder or ENCODER, words=known.lexicon, language=task.language
        )
        left = [one for one in known.recipes if not resources.missing(one)]
        if out := [one.label for one in known.recipes if one not in left]:
            notes.append(f"{', '.join(out)}: left out, since the package has the words for English alone")
            attacks = {
                "recipes": [one.model_dump(exclude_defaults=True) | {"name": one.name} for one in left]
            }
            raw["attack"] = {**raw["attack"], **attacks} if left else None
    return tuple(notes)


def _judged_on(raw: Raw, task: Task, *, typos: bool) -> None:
    """Evaluate on the task's reported split, on the same split with typos, and on the task's companions."""
    split = task.default_split
    on = [split]
    if typos and (task.single_label or task.kind == "regression"):
        on.append(f"{split}+typos")
    companions = [name for name in ("ood", "adversarial") if getattr(task.companions, name)]
    raw["evaluate"] = {**raw.get("evaluate", {}), "on": [*on, *companions]}
    if raw.get("attack"):
        raw["attack"] = {**raw["attack"], "on": split} if task.single_label else None
