"""What the ticket of `compress` should withstand: its training on changed texts, and the correction of its inputs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tombola.api.order_checks import AGAINST
from tombola.augmentations import Typos
from tombola.augmentations.reach import unchanged_by, why_unchanged
from tombola.recipe.reading import Raw
from tombola.tasks import Split, Task, kind_of

logger = logging.getLogger(__name__)

SWAPS = {"kind": "swaps", "share": 0.15, "weight": 0.3}
"""The adversary in the training of a ticket that should withstand synonyms."""


def set_robustness(raw: Raw, against: Sequence[str]) -> None:
    """Set the augmentations that the ticket is trained on and the defenses that correct its inputs."""
    kinds = [AGAINST[name]["augment"] for name in dict.fromkeys(against)]
    raw["defend"] = list(dict.fromkeys(defense for name in against for defense in AGAINST[name]["defend"]))
    _augment(raw, kinds)


def _augment(raw: Raw, kinds: Sequence[Any]) -> None:
    """Set the augmentations of the search and of the training of the ticket; none leaves their texts unchanged."""
    searches = [raw["search"]] if raw["search"].get("augment") else []
    for part in (raw["retrain"], *searches):
        if kinds:
            part["augment"] = {**(part.get("augment") or {}), "of": list(kinds)}
        else:
            part.pop("augment", None)
    if not kinds and "inputs" in raw["search"]:
        raw["search"]["inputs"] = "clean"


def drop_idle_typos(raw: Raw) -> bool:
    """Leave out typos, and their correction, if they cannot change the texts; return whether typos can change them."""
    kinds = list((raw["retrain"].get("augment") or {}).get("of") or ())
    typos = [kind for kind in kinds if (kind.get("kind") if isinstance(kind, dict) else kind) == "typos"]
    if not typos or not kind_of(Task.named(raw["task"])).reads_whole_texts:
        return True
    split = training_texts(raw)
    unchanged = unchanged_by([Typos()], split)
    if not unchanged:
        return True
    logger.warning("--against typos is skipped: %s", why_unchanged(unchanged, split))
    raw["defend"] = [
        defense for defense in raw.get("defend") or () if defense not in AGAINST["typos"]["defend"]
    ]
    _augment(raw, [kind for kind in kinds if kind not in typos])
    return False


def swap_words(raw: Raw, task: Task, changed: Collection[str]) -> tuple[str, ...]:
    """Train the ticket on the most harmful neighbours of its words: random synonyms alone do not help."""
    if "retrain.adversary" in changed or raw["retrain"].get("adversary"):
        return ()
    if not task.english or not kind_of(task).reads_whole_texts:
        return ()
    if not task.all_attackable:
        fixed = ", ".join(name for name in task.text if name not in task.attackable)
        return (f"against synonyms: training on random synonyms only, since attacks may not change {fixed}",)
    raw["retrain"]["adversary"] = dict(SWAPS)
    return ("against synonyms: the ticket is also trained on the neighbours of its words that harm it most",)


def training_texts(raw: Raw) -> Split:
    """Return the training texts of the recipe's task."""
    folder = (raw.get("data") or {}).get("folder")
    return Task.named(raw["task"]).load("train", folder=Path(folder).expanduser() if folder else None)
