"""Multi-label classification: every text has any number of the task's labels, including none."""

from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from tombola.tasks.kinds import KindSettings, TaskKind, task_kinds
from tombola.tasks.kinds.classification import label_numbers
from tombola.tasks.readers import BadRow, DoesNotFit
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Collate
    from tombola.tasks.task import Task

_YES = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "0": 0, "0.0": 0, "false": 0, "no": 0, "": 0}


class MultiLabelSettings(KindSettings):
    """Which labels count as predicted."""

    unhashed: ClassVar[frozenset[str]] = frozenset({"threshold"})

    threshold: float = Field(0.5, gt=0, lt=1, description="probability above which a label is predicted")

    @property
    def least_logit(self) -> float:
        """The logit above which a label is predicted."""
        return log(self.threshold / (1 - self.threshold))


@task_kinds("multi-label")
class MultiLabel(TaskKind):
    """Any number of labels per text."""

    about = "any number of labels for every text or pair of texts"
    fewest_labels = 2
    settings = MultiLabelSettings
    evaluator = "label sets"

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], list[int]]:
        """Return a function that reads a 0 or 1 per label, from a list in the column `labels` or a column per label."""
        names = task.labels or []
        if columns.has("labels"):
            return self._listed(task, columns)
        if not all(columns.has(name) for name in names):
            raise DoesNotFit(
                f"{columns.table.where(1)}: neither a column 'labels' nor one for each label "
                f"({', '.join(names)}); the columns are {', '.join(map(repr, columns.table.columns))}."
            )
        read = [(name, columns.value(name)) for name in names]
        return lambda values, _: [_flag(name, value(values)) for name, value in read]

    def _listed(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], list[int]]:
        value, separator = columns.value("labels"), columns.layout.separator
        numbers = label_numbers(task, columns.layout.values)
        expected = ", ".join(columns.layout.values or task.labels or ())

        def read(values: list[Any], _: tuple[str, ...]) -> list[int]:
            raw = value(values)
            if raw is None:
                raise BadRow("no list of labels; for a text without labels, use an empty list")
            labels = raw if isinstance(raw, list | tuple) else str(raw).split(separator)
            flags = [0] * len(task.labels or ())
            for name in filter(None, (str(label).strip() for label in labels)):
                if name not in numbers:
                    raise BadRow(
                        f"unknown label {name!r}; expected {expected}, separated by {separator!r}: correct the row, "
                        "add the label to `labels`, or set `source.separator` in the task file"
                    )
                flags[numbers[name]] = 1
            return flags

        return read

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> list[int]:
        """Return no labels."""
        return [0] * len(task.labels or ())

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return a collator with rows of 0 and 1 as labels, for binary cross-entropy."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer, regression=True)

    def head(self, task: "Task") -> dict[str, Any]:
        """Return an output per label, each with an independent probability."""
        return {**super().head(task), "problem_type": "multi_label_classification"}


def _flag(name: str, raw: Any) -> int:
    flag = _YES.get("" if raw is None else str(raw).strip().lower())
    if flag is None:
        raise BadRow(f"column {name!r} has {raw!r}, expected 0 or 1")
    return flag
