"""Regression: every text, or pair of texts, has a number."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tombola.tasks.kinds import TaskKind, task_kinds
from tombola.tasks.readers import BadRow
from tombola.tasks.rows import Columns, SkippedRow

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Collate
    from tombola.tasks.task import Task


@task_kinds("regression")
class Regression(TaskKind):
    """A number per text."""

    about = "a number for every text or pair of texts"
    evaluator = "numbers"

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], float]:
        """Return a function that reads the number in the column `label`."""
        value, skipping, mark = columns.value("label"), columns.layout.skip_empty, columns.layout.decimal

        def read(values: list[Any], _: tuple[str, ...]) -> float:
            raw = value(values)
            if skipping and (raw is None or not str(raw).strip()):
                raise SkippedRow
            return _number(raw, mark)

        return read

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> float:
        """Return zero."""
        return 0.0

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return a collator with floats as labels."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer, regression=True)

    def head(self, task: "Task") -> dict[str, Any]:
        """Return a single output."""
        return {"num_labels": 1, "problem_type": "regression"}


def _number(raw: Any, mark: str) -> float:
    if raw is None or not str(raw).strip():
        raise BadRow(
            "no label; expected a number: fill it in, remove the row, or skip such rows with `source.skip_empty: "
            "true` in the task file"
        )
    try:
        number = float(raw.replace(mark, ".") if isinstance(raw, str) else raw)
    except (TypeError, ValueError):
        remedy = "set `source.decimal: ','` in the task file" if "," in str(raw) else "correct it"
        raise BadRow(f"label {raw!r} is not a number: {remedy}, or use kind: classification") from None
    if not math.isfinite(number):
        raise BadRow(f"label {raw!r} is not a finite number")
    return number
