"""Examples without labels, from a file or from memory, for prediction."""

from collections.abc import Iterable
from pathlib import Path

from tombola.errors import DataError
from tombola.tasks.kinds import Row, kind_of
from tombola.tasks.places import open_unlabelled
from tombola.tasks.split import Split
from tombola.tasks.task import Task


def unlabelled(task: Task, rows: Path | str | Iterable[Row], name: str = "unlabelled") -> Split:
    """Return unlabelled examples from a file in one of the task's layouts or from rows, with placeholder labels.

    Args:
        task: The task that defines the format.
        rows: A file, or texts. A row is a text, a pair of texts, a mapping of the task's text columns, or for token
            classification a list of words.
        name: The name of the split.
    """
    if isinstance(rows, Path | str):
        found, _ = open_unlabelled(task, Path(rows))
        return Split(task, name, found.texts, found.labels, found.ids, str(rows))
    kind = kind_of(task)
    texts = [kind.given(task, row, number) for number, row in enumerate(rows)]
    if not texts:
        raise DataError("There is nothing to predict: no row was given.")
    labels = [kind.unknown(task, one) for one in texts]
    return Split(task, name, texts, labels, [str(number) for number in range(len(texts))], "memory")
