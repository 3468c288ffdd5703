"""Examples without labels, from a file or from memory, to be predicted or labelled."""

from collections.abc import Iterable
from pathlib import Path

from tombola.errors import DataError
from tombola.tasks.kinds import Row, kind_of
from tombola.tasks.lines import ending_of, numbered_lines
from tombola.tasks.places import open_unlabelled
from tombola.tasks.readers import half_character
from tombola.tasks.split import Split
from tombola.tasks.task import Task


def new_texts(task: Task, file: Path, known: Iterable[Split]) -> Split:
    """Return the unlabelled texts of a file that no known split contains, each once, with placeholder labels.

    Args:
        task: The task that defines the format; it must have one label per text.
        file: A file in one of the task's layouts, or a .txt file with one text per line.
        known: The splits whose texts are left out, however they are written.
    """
    if not task.single_label:
        raise DataError(
            f"{file}: labelling new texts needs a task with one label per text, but {task.name} is a {task.kind} "
            "task."
        )
    lines = ending_of(file) == ".txt"
    if lines and len(task.text) > 1:
        raise DataError(
            f"{file}: a .txt file has one text per line, but {task.name} reads {' and '.join(task.text)}: pass a .csv, "
            ".tsv or .jsonl file with these columns."
        )
    found = unlabelled(task, _lines(file) if lines else file)
    known_keys = {key for split in known for key in split.text_keys}
    first = {key: place for place, key in reversed(list(enumerate(found.text_keys)))}
    places = sorted(place for key, place in first.items() if key not in known_keys)
    if not places:
        raise DataError(f"{file}: every text is already in the data of {task.name}.")
    return found.select(places)


def _lines(file: Path) -> list[str]:
    return [line for _, line in numbered_lines(file) if line.strip()]


def unlabelled(task: Task, rows: Path | str | Iterable[Row], name: str = "unlabelled") -> Split:
    """Return unlabelled examples from a file in one of the task's layouts or from rows, with placeholder labels.

    Args:
        task: The task that defines the format.
        rows: A file, or texts. A row is a text, a pair of texts, a mapping of the task's text columns, or for token
            classification a list of words.
        name: The name of the split.
    """
    if isinstance(rows, Path | str):
        split, _ = open_unlabelled(task, Path(rows))
        return Split(task, name, split.texts, split.labels, split.ids, str(rows))
    kind = kind_of(task)
    texts = [kind.given(task, row, number) for number, row in enumerate(rows)]
    if not texts:
        raise DataError("There is nothing to predict: no row was given.")
    for number, text in enumerate(texts):
        if problem := half_character(text):
            raise DataError(f"Row {number}: {problem}.")
    labels = [kind.unknown(task, one) for one in texts]
    return Split(task, name, texts, labels, [str(number) for number in range(len(texts))], "memory")
