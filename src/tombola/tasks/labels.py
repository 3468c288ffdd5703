"""Labels by what they mean: which outputs of a model, or labels of another task, stand for each of a task's labels."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tombola.errors import DataError

if TYPE_CHECKING:
    from tombola.tasks.task import Task


def meaning(label: str) -> str:
    """A label's name without what publishers differ in: case, separators, `non-` for `not_`."""
    words = re.split(r"[\W_]+", label.casefold())
    return " ".join("not" if word == "non" else word for word in words if word)


def outputs_by_label(names: Sequence[str], task: "Task") -> list[list[int]] | None:
    """Of each of the task's labels, the places of the `names` that mean it; None unless all find their place.

    Names of finer labels go where the task's `merge` says: `neutral` is part of HANS' `non-entailment`.
    """
    finer = {meaning(name): meaning(ours) for name, ours in task.merge.items()}
    wanted = [meaning(label) for label in task.labels or ()]
    found = [finer.get(meaning(name), meaning(name)) for name in names]
    if set(found) != set(wanted) or len({meaning(name) for name in names}) < len(names):
        return None
    return [[place for place, name in enumerate(found) if name == label] for label in wanted]


def labels_within(other: "Task", own: "Task") -> list[int]:
    """Of each label of another task, the number of the own label that its examples are trained with.

    Where the own task tells more apart, that is the first of its labels in the other's `merge`: the pairs of
    HANS that do not entail are `neutral` in MNLI, as their hypothesis is left open far more often than refuted.
    """
    ours = {meaning(label): number for number, label in enumerate(own.labels or ())}
    coarse: dict[str, int] = {}
    for finer, label in other.merge.items():
        if meaning(finer) in ours:
            coarse.setdefault(label, ours[meaning(finer)])
    numbers = [ours.get(meaning(label), coarse.get(label)) for label in other.labels or ()]
    if not numbers or None in numbers:
        raise DataError(
            f"The labels of {other.name}, {other.labels}, cannot be told from those of {own.name}, {own.labels}: "
            "give the task file the same names, or a `merge`."
        )
    return [number for number in numbers if number is not None]
