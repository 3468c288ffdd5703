"""Classification: every text, or pair of texts, has one of the task's labels."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from tombola.errors import DataError
from tombola.tasks.kinds import KindSettings, TaskKind, settings_of, task_kinds
from tombola.tasks.kinds.decoders import AnswerKind
from tombola.tasks.prompts import check_prompt, fill
from tombola.tasks.readers import BadRow
from tombola.tasks.rows import Columns, SkippedRow

if TYPE_CHECKING:
    from tombola.tasks.continuations import Continuation
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


class ClassificationSettings(KindSettings):
    """How the label is predicted: by a classifier's head, or by a decoder's likelihood of an answer to a prompt."""

    by: Literal["head", "likelihood"] = Field(
        "head",
        description="likelihood: predict the label whose answer a decoder finds most likely after the prompt",
    )
    prompt: str = Field(
        "",
        description="by likelihood: text before the answer, with columns of `text` in braces, e.g. `Review: {text}`",
    )
    answers: tuple[str, ...] = Field(
        (), description="by likelihood: answer for each label; by default the label's name"
    )
    delimiter: str = Field(" ", description="by likelihood: text between the prompt and the answer")


@task_kinds("classification")
class Classification(TaskKind):
    """One label per text."""

    about = "one label for every text or pair of texts"
    fewest_labels = 2
    single_label = True
    settings = ClassificationSettings

    @classmethod
    def of(cls, task: "Task") -> TaskKind:
        """Return the kind for a decoder without a classification head, if the task asks for it."""
        return ByLikelihood() if task.settings.get("by") == "likelihood" else cls()

    def check(self, task: "Task") -> None:
        """Reject prompts and answers without `by: likelihood`."""
        super().check(task)
        unused = [name for name in ("prompt", "answers", "delimiter") if name in task.settings]
        if unused and self.label_logits:
            raise ValueError(
                f"settings.{unused[0]}: only works with `by: likelihood`; add that, or leave it out"
            )

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], int]:
        """Return a function that reads the label's index from the column `label`."""
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
                    f"no label; expected one of {expected}: fill it in, remove the row, or skip such rows with "
                    "`source.skip_empty: true` in the task file"
                )
            if name == "-1":
                raise DataError(
                    f"This split of {task.name!r} is unlabelled (its labels are -1, as in public test sets): "
                    "use another split."
                )
            raise BadRow(
                f"unknown label {raw!r}; expected one of {expected}: correct the row, add the label to `labels` in "
                "the task file, or map it to a label with `source.values`"
            )

        return read

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> int:
        """Return the first label."""
        return 0


class ByLikelihood(AnswerKind, Classification):
    """Classification by a decoder: every label has an answer, and the most likely after the prompt wins."""

    label_logits = False
    evaluator = "label likelihoods"

    def check(self, task: "Task") -> None:
        """Check that the prompt names text columns and that each label has an answer."""
        super().check(task)
        check_prompt(str(task.settings.get("prompt", "")), task.text)
        answers = task.settings.get("answers")
        if answers and len(answers) != len(task.labels or ()):
            raise ValueError(
                f"settings.answers: {len(answers)} answers for {len(task.labels or ())} labels; give one for each"
            )

    def answers(self, split: "Split") -> "list[Continuation]":
        """Return each prompt with the answers of all labels."""
        from tombola.tasks.continuations import Continuation

        task = split.task
        settings = settings_of(task, ClassificationSettings)
        answers = settings.answers or task.labels or ()
        return [
            Continuation(
                example,
                choice,
                fill(settings.prompt, dict(zip(task.text, texts, strict=True))),
                settings.delimiter + answer,
            )
            for example, texts in enumerate(split.texts)
            for choice, answer in enumerate(answers)
        ]


def label_numbers(task: "Task", values: dict[str, str]) -> dict[str, int]:
    """Return the spellings of each label: the layout's `values`, else the label's name or index.

    If a label is named after another one's index, as stars from 1 to 5 are, only names count.
    """
    index = {name: number for number, name in enumerate(task.labels or ())}
    known = {raw: index[name] for raw, name in values.items()}
    indices = {str(number): number for number in index.values()}
    unambiguous = all(index.get(name, number) == number for name, number in indices.items())
    return known | (index if values or not unambiguous else indices | index)
