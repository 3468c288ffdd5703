"""Classification: every text, or pair of texts, has one of the task's labels."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.kinds import TaskKind, task_kinds
from tombola.tasks.readers import BadRow
from tombola.tasks.rows import Columns, SkippedRow

if TYPE_CHECKING:
    from tombola.tasks.task import Task


@task_kinds("classification")
class Classification(TaskKind):
    """One label per text."""

    about = "one label for every text or pair of texts"
    fewest_labels = 2
    single_label = True

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], int]:
        """The number of the label in the column `label`."""
        value, layout = columns.value("label"), columns.layout
        numbers = label_numbers(task, layout.values)
        expected = ", ".join(layout.values or task.labels or ())

        def read(values: list[Any], _: tuple[str, ...]) -> int:
            raw = value(values)
            name = "" if raw is None else str(raw).strip()
            if name in layout.skip_labels:
                raise SkippedRow
            if name in numbers:
                return numbers[name]
            if not name and layout.skip_empty:
                raise SkippedRow
            if not name:
                raise BadRow(
                    f"no label; expected one of {expected}: fill it in or remove the row, or leave such rows out with "
                    "`source.skip_empty: true` in the task file"
                )
            if name == "-1":
                raise DataError(
                    f"This split of {task.name!r} is unlabelled (its labels are -1, as in public test sets): "
                    "use another split."
                )
            raise BadRow(
                f"unknown label {raw!r}; expected one of {expected}: correct the row, add the label to `labels` in "
                "the task file, or say with `source.values` which label it stands for"
            )

        return read

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> int:
        """The first label."""
        return 0


def label_numbers(task: "Task", values: dict[str, str]) -> dict[str, int]:
    """What may stand for each label: `values` where the layout has them, else the label's name or its number."""
    index = {name: number for number, name in enumerate(task.labels or ())}
    known = {raw: index[name] for raw, name in values.items()}
    return known | (index if values else {str(number): number for number in index.values()} | index)
