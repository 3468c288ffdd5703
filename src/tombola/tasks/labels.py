"""Match labels by meaning: map the outputs of a model, or the labels of another task, to a task's labels."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tombola.errors import DataError

if TYPE_CHECKING:
    from tombola.tasks.task import Task

_UNNAMED = re.compile(r"(?:label_)?(\d+)", re.IGNORECASE)


def meaning(label: str) -> str:
    """Normalise a label's name, in which publishers differ: case, separators, `non-` for `not_`."""
    words = re.split(r"[\W_]+", label.casefold())
    return " ".join("not" if word == "non" else word for word in words if word)


def are_unnamed(names: Sequence[str]) -> bool:
    """Return whether a model's outputs are only numbered, as transformers does by default: `LABEL_0`."""
    matches = [_UNNAMED.fullmatch(name) for name in names]
    return all(match is not None and int(match[1]) == place for place, match in enumerate(matches))


def outputs_by_label(names: Sequence[str], task: "Task") -> list[list[int]] | None:
    """Return the indices of the `names` for each of the task's labels; None unless all match.

    The task's `merge` maps finer labels: `neutral` is part of HANS' `non-entailment`.
    """
    if list(names) == list(task.labels or ()):  # also if they differ only in signs, as `c` and `c++` do
        return [[place] for place in range(len(names))]
    finer = {meaning(name): meaning(ours) for name, ours in task.merge.items()}
    wanted = [meaning(label) for label in task.labels or ()]
    labels = [finer.get(meaning(name), meaning(name)) for name in names]
    if set(labels) != set(wanted) or len({meaning(name) for name in names}) < len(names):
        return None
    return [[place for place, name in enumerate(labels) if name == label] for label in wanted]


def labels_within(other: "Task", own: "Task") -> list[int]:
    """Return the index of the own label with which examples of each label of another task are trained.

    If the own task has finer labels, the first of them in the other's `merge` is used: the pairs of HANS that do not
    entail are `neutral` in MNLI, as their hypothesis is left open far more often than refuted.
    """
    if other.labels == own.labels:  # also if they differ only in signs, which `meaning` drops
        return list(range(len(own.labels or ())))
    ours = {meaning(label): number for number, label in enumerate(own.labels or ())}
    coarse: dict[str, int] = {}
    for finer, label in other.merge.items():
        if meaning(finer) in ours:
            coarse.setdefault(label, ours[meaning(finer)])
    numbers = [ours.get(meaning(label), coarse.get(label)) for label in other.labels or ()]
    if not numbers or None in numbers:
        raise DataError(
            f"The labels of {other.name}, {other.labels}, cannot be matched with those of {own.name}, {own.labels}: "
            "use the same names in the task file, or add a `merge`."
        )
    return [number for number in numbers if number is not None]
