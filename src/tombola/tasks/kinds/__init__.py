"""Kinds of task. A kind is one file: how its data is read, encoded and collated, and which model it needs.

How predictions are made and scored is the evaluator that the kind names; evaluators are registered in
`tombola.evaluation`, where a new kind that predicts as an existing one does needs nothing of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.errors import DataError
from tombola.foundations.registry import Registry
from tombola.foundations.settings import Settings
from tombola.tasks.definition import Layout
from tombola.tasks.readers import BadRow, Table, open_table
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Collate, Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task

Example = tuple[tuple[str, ...], Any]
"""The texts of an example and its target: a class, a number, answers, tags …"""
Reader = Callable[[list[Any]], Example]
Row = str | Sequence[str] | Mapping[str, Any]
"""An example without a label, as users give it: a text, two texts, or texts by column."""


class KindSettings(Settings):
    """What may be set for a task of a kind, in the task file or in a recipe; here nothing.

    Settings that decide on scores alone, not on what is trained, belong into `unhashed`.
    """


class TaskKind(ABC):
    """What tasks of one kind have in common. Subclass it and register the subclass with `@task_kinds(name)`."""

    about: ClassVar[str] = ""
    """One line for lists."""
    text_columns: ClassVar[tuple[int, ...]] = (1, 2)
    """How many columns of text a task may have."""
    fewest_labels: ClassVar[int] = 0
    """How many labels a task lists at least; 0 for a kind without labels."""
    single_label: ClassVar[bool] = False
    """Whether every example has exactly one of the labels: what attacks, debiasing and mixing need."""
    packs: ClassVar[bool] = False
    """Whether encoded examples are blocks of text, of which there are not as many as examples in the data."""
    label_logits: ClassVar[bool] = True
    """Whether a model's logits are of the labels, where there are labels: what attacks and debiasing look at."""
    settings: ClassVar[type[KindSettings]] = KindSettings
    model: ClassVar[str] = "AutoModelForSequenceClassification"
    """The Auto class of transformers that builds the model."""
    pretrained_head: ClassVar[str] = ""
    """Whose head it is ("a masked language model"), where pre-trained models bring it along."""
    evaluator: ClassVar[str] = "classes"
    """Who predicts and scores: an entry of `tombola.evaluation.evaluators`."""

    @classmethod
    def of(cls, task: "Task") -> "TaskKind":
        """The kind of a task; another where its settings change what is predicted."""
        return cls()

    @property
    def reads_whole_texts(self) -> bool:
        """Whether an example's texts may be changed freely: they are tokenised whole, and no label points into them."""
        return type(self).encode is TaskKind.encode

    def check(self, task: "Task") -> None:
        """Raise a ValueError that names the field if a task file does not make sense."""
        allowed, classes = self.text_columns, task.labels or []
        if len(task.text) not in allowed:
            raise ValueError(f"text: takes {' or '.join(map(str, allowed))} columns of a {task.kind} task")
        if not self.fewest_labels and task.labels is not None:
            raise ValueError(f"labels: a {task.kind} task has none")
        if len(classes) < self.fewest_labels:
            raise ValueError(f"labels: a {task.kind} task lists {self.fewest_labels} or more")
        if (task.groups or task.merge) and not self.single_label:
            raise ValueError(f"groups, merge: are for tasks with one label per text, not for {task.kind}")
        if any(layout.skip_labels for layout in task.source.layouts) and not self.single_label:
            raise ValueError("source.skip_labels: is for tasks with one label per text")

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """The rows of a data file."""
        return open_table(file, layout)

    def rows(self, task: "Task", table: Table) -> Table:
        """The rows that are examples, where a table has others too, or examples of several rows."""
        return table

    def texts(self, task: "Task", columns: Columns) -> Callable[[list[Any]], tuple[str, ...]]:
        """What finds an example's texts in a row."""
        read = [columns.text(name) for name in task.text]
        return lambda values: tuple(one(values).strip() for one in read)

    @abstractmethod
    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], Any]:
        """What finds an example's target in a row, given its texts."""

    def given(self, task: "Task", row: Row, number: int) -> tuple[str, ...]:
        """The texts of an unlabelled example as users give it in memory."""
        if isinstance(row, Mapping):
            lacking = [name for name in task.text if name not in row]
            if lacking:
                raise DataError(f"Row {number}: no {lacking[0]!r}; {task.name} reads {', '.join(task.text)}.")
            row = [row[name] for name in task.text]
        texts = (row,) if isinstance(row, str) else tuple(row)
        if len(texts) != len(task.text) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"Row {number}: {row!r} where {task.name} reads {', '.join(task.text)}.")
        if not all(map(str.strip, texts)):
            raise DataError(f"Row {number}: the text is empty.")
        return texts

    @abstractmethod
    def unknown(self, task: "Task", texts: tuple[str, ...]) -> Any:
        """A stand-in for the target of an example that has none."""

    def reader(self, task: "Task", columns: Columns, labelled: bool = True) -> Reader:
        """What makes an example of a row; BadRow gives all that is wrong with it."""
        texts = self.texts(task, columns)
        if not labelled:
            return lambda values: (found := texts(values), self.unknown(task, found))
        target = self.target(task, columns)

        def read(values: list[Any]) -> Example:
            try:
                found = texts(values)
            except BadRow as bad:
                raise BadRow("; ".join([str(bad), *_reason(lambda: target(values, ("", "")))])) from None
            return found, target(values, found)

        return read

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """The split as token ids."""
        from tombola.tasks.encoding import encode_texts

        return encode_texts(split, tokenizer, max_length)

    def encode_scored(
        self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int
    ) -> "Encoded":
        """The split as token ids for its evaluation, where that is not what is trained on."""
        return self.encode(split, tokenizer, max_length)

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """What makes batches of encoded examples. `seed` is for collators that draw something."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer)

    def head(self, task: "Task") -> dict[str, Any]:
        """What the model's config says about its head: names of the outputs, or their number."""
        names = dict(enumerate(task.labels or ()))
        return {"id2label": names, "label2id": {name: number for number, name in names.items()}}


task_kinds: Registry[type[TaskKind]] = Registry(
    "kind of task",
    [
        f"{__name__}.{name}"
        for name in (
            "causal_lm",
            "classification",
            "masked_lm",
            "multi_label",
            "multiple_choice",
            "question_answering",
            "regression",
            "token_classification",
        )
    ],
)
"""Every kind of task, by the name that task files give as `kind`."""


def kind_of(task: "Task") -> TaskKind:
    """The kind of a task."""
    return task_kinds[task.kind].of(task)


def encode(split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
    """Tokenise a split as its kind of task does: texts are cut at `max_length`, contexts go in windows …"""
    return kind_of(split.task).encode(split, tokenizer, max_length)


def collate_of(task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int = 0) -> "Collate":
    """The collator of a task's encoded data. `seed` matters to masked language modelling alone."""
    return kind_of(task).collate(task, tokenizer, seed)


def _reason(read: Callable[[], Any]) -> list[str]:
    """Why a value cannot be read, if it cannot."""
    try:
        read()
    except BadRow as bad:
        return [str(bad)]
    return []
