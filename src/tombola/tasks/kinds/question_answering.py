"""Extractive question answering: find the span of a context that answers a question. (SQuAD)"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.tasks.definition import Layout
from tombola.tasks.kinds import KindSettings, TaskKind, settings_of, task_kinds
from tombola.tasks.lines import ending_of
from tombola.tasks.questions import Answers, question_table, read_answers
from tombola.tasks.readers import Table, open_table
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


class QuestionSettings(KindSettings):
    """How long contexts are split into windows. The defaults are BERT's for SQuAD."""

    doc_stride: int = Field(
        128, gt=0, description="tokens between the starts of adjacent windows; at most half a window"
    )
    max_query_length: int = Field(
        64,
        gt=0,
        description="maximum tokens of a question, at most half of the input; longer ones are truncated",
    )


@task_kinds("question-answering")
class QuestionAnswering(TaskKind):
    """A question and a context that holds its answer."""

    about = "the words of a context that answer a question"
    text_columns = (2,)
    keeps_blanks = True
    settings = QuestionSettings
    model = "AutoModelForQuestionAnswering"
    evaluator = "spans"

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """Read SQuAD's nested .json files, or a table."""
        return question_table(file) if ending_of(file) == ".json" else open_table(file, layout)

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], Answers]:
        """Return a function that reads the column `answers`."""
        value = columns.value("answers")
        return lambda values, texts: read_answers(value(values), texts[1], task.unanswerable)

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> Answers:
        """Return no answer."""
        return Answers((), None)

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Encode each question with the windows of its context."""
        from tombola.tasks.windows import encode_questions

        settings = settings_of(split.task, QuestionSettings)
        return encode_questions(
            split, tokenizer, max_length, stride=settings.doc_stride, longest=settings.max_query_length
        )

    def estimate_inputs(self, split: "Split", max_length: int) -> int:
        """Estimate the number of windows."""
        from tombola.tasks.estimating import estimate_windows

        settings = settings_of(split.task, QuestionSettings)
        return estimate_windows(
            split, max_length, stride=settings.doc_stride, longest=settings.max_query_length
        )

    def head(self, task: "Task") -> dict[str, Any]:
        """Return two outputs: the logits of an answer's start and end."""
        return {"num_labels": 2}
