"""Mix examples of another task into the training data: the upper bound of what debiasing may reach. (SRNets, §5)"""

from dataclasses import replace

from pydantic import Field

from tombola.errors import DataError
from tombola.foundations.settings import Settings
from tombola.tasks.labels import labels_within
from tombola.tasks.split import Split


class Mixed(Settings):
    """The data to mix in, and the number of copies of each example."""

    on: str = Field(description="task or task/split whose labels the recipe's task has too, e.g. hans/train")
    times: int = Field(1, gt=0, description="copies of each example")
    limit: int | None = Field(None, gt=0, description="size of a random subset; by default all examples")


def mix_in(split: Split, other: Split, times: int = 1) -> Split:
    """Append `times` copies of the other's examples, with labels of the split's task and new ids."""
    if len(other.task.text) != len(split.task.text):
        raise DataError(
            f"{other.task.name} cannot be mixed into {split.task.name}: its examples have {len(other.task.text)} "
            f"texts, not {len(split.task.text)}."
        )
    for task in (split.task, other.task):
        if not task.single_label:
            raise DataError(
                f"{other.task.name} cannot be mixed into {split.task.name}: {task.name} is a {task.kind} task, and "
                "only tasks with one label per text can be mixed."
            )
    numbers = labels_within(other.task, split.task)
    name = f"{other.task.name}/{other.name}"
    return replace(
        split,
        texts=split.texts + other.texts * times,
        labels=split.labels + [numbers[label] for label in other.labels] * times,
        ids=split.ids + [f"{name}:{identity}:{copy}" for copy in range(times) for identity in other.ids],
        columns={},
    )
