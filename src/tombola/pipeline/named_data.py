"""Find the data that a recipe names."""

from collections.abc import Sequence

from tombola.pipeline.references import DataSource
from tombola.recipe.sections import DataSettings
from tombola.tasks.mixing import Mixed
from tombola.tasks.targets import all_targets, find_target

TEXTS = 512
"""The most texts to time models on."""


def find_data(
    settings: DataSettings,
    task: str,
    on: str,
    limit: int | None,
    mix: Sequence[Mixed] = (),
    predicted_in: str | None = None,
) -> DataSource:
    """Find the data that `on` refers to in a recipe: a split of its task, or `task` or `task/split` of another.

    Args:
        settings: The recipe's `data`.
        task: The recipe's task.
        on: The name of the data.
        limit: Size of a random subset.
        mix: Other data to mix in.
        predicted_in: A file of a bias model's predictions: examples without one are left out.
    """
    name, split = find_target(on, task)
    own_task = name == task
    return DataSource.find(
        name,
        split,
        settings.folder,
        limit,
        settings.seed,
        holdout=settings.holdout if own_task else None,
        synthetic_bias=settings.synthetic_bias if own_task else None,
        mix=tuple(mix),
        task_settings=settings.task_settings,
        predicted_in=predicted_in,
    )


def find_texts(settings: DataSettings, task: str, on: Sequence[str]) -> DataSource:
    """Find texts to time models on, from the recipe's first evaluation data, or its training data if there is none.

    Args:
        settings: The recipe's `data`.
        task: The recipe's task.
        on: The recipe's `evaluate.on`.
    """
    targets = all_targets(tuple(on), task) or ["train"]
    return find_data(settings, task, targets[0], min(TEXTS, settings.evaluation or TEXTS))
