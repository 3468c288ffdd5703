"""Kinds of task. Each is one file: how to read, encode and collate its data, and which model it needs.

The evaluator that the kind names makes and scores predictions. Evaluators are registered in `tombola.evaluation`; a
new kind may reuse an existing one.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

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
"""An unlabelled example from a user: a text, two texts, or texts by column."""


class KindSettings(Settings):
    """The settings of a kind of task, in the task file or a recipe; none by default.

    Settings that affect only scores, not training, belong in `unhashed`.
    """


S = TypeVar("S", bound=KindSettings)


class TaskKind(ABC):
    """A kind of task. Subclass it and register the subclass with `@task_kinds(name)`."""

    about: ClassVar[str] = ""
    """A one-line description for lists."""
    text_columns: ClassVar[tuple[int, ...]] = (1, 2)
    """The allowed numbers of text columns."""
    fewest_labels: ClassVar[int] = 0
    """The minimum number of labels; 0 for a kind without labels."""
    keeps_blanks: ClassVar[bool] = False
    """Whether white space around texts stays: it is predicted, or answers are spans of characters."""
    single_label: ClassVar[bool] = False
    """Whether every example has exactly one label, as attacks, debiasing and mixing require."""
    label_logits: ClassVar[bool] = True
    """Whether a model's logits are those of the labels, if any, as attacks and debiasing require."""
    settings: ClassVar[type[KindSettings]] = KindSettings
    model: ClassVar[str] = "AutoModelForSequenceClassification"
    """The Auto class of transformers that builds the model."""
    pretrained_head: ClassVar[str] = ""
    """The model that the head belongs to ("a masked language model"), if pre-trained models have it."""
    evaluator: ClassVar[str] = "classes"
    """The evaluator: an entry of `tombola.evaluation.evaluators`."""

    @classmethod
    def of(cls, task: "Task") -> "TaskKind":
        """Return the kind of a task; a different one if its settings change what is predicted."""
        return cls()

    @property
    def reads_whole_texts(self) -> bool:
        """Whether texts may be changed freely: they are tokenised whole, and no label points into them."""
        return type(self).encode is TaskKind.encode

    def check(self, task: "Task") -> None:
        """Raise a ValueError that names the field if a task file is invalid."""
        allowed, classes = self.text_columns, task.labels or []
        if len(task.text) not in allowed:
            raise ValueError(f"text: takes {' or '.join(map(str, allowed))} columns of a {task.kind} task")
        if not self.fewest_labels and task.labels is not None:
            raise ValueError(f"labels: a {task.kind} task has none")
        if len(classes) < self.fewest_labels:
            raise ValueError(f"labels: a {task.kind} task needs at least {self.fewest_labels}")
        if (task.groups or task.merge) and not self.single_label:
            raise ValueError(
                f"groups, merge: only work for tasks with one label per text, not for {task.kind}"
            )
        if any(layout.skip_labels for layout in task.source.layouts) and not self.single_label:
            raise ValueError("source.skip_labels: only works for tasks with one label per text")

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """Return the rows of a data file."""
        return open_table(file, layout)

    def rows(self, task: "Task", columns: Columns) -> Table:
        """Return the rows that are examples, if a table has other rows or examples that span several rows."""
        return columns.table

    def texts(self, task: "Task", columns: Columns) -> Callable[[list[Any]], tuple[str, ...]]:
        """Return a function that extracts an example's texts from a row."""
        read = [columns.text(name) for name in task.text]
        return lambda values: self._trimmed(tuple(reader(values) for reader in read))

    def _trimmed(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return texts if self.keeps_blanks else tuple(map(str.strip, texts))

    @abstractmethod
    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], Any]:
        """Return a function that extracts an example's target from a row, given its texts."""

    def given(self, task: "Task", row: Row, number: int) -> tuple[str, ...]:
        """Return the texts of an unlabelled example given in memory."""
        if isinstance(row, Mapping):
            lacking = [name for name in task.text if name not in row]
            if lacking:
                raise DataError(f"Row {number}: no {lacking[0]!r}; {task.name} reads {', '.join(task.text)}.")
            row = [row[name] for name in task.text]
        texts = tuple(row) if isinstance(row, Iterable) and not isinstance(row, str) else (row,)
        if len(texts) != len(task.text) or not all(isinstance(text, str) for text in texts):
            raise DataError(f"Row {number}: {row!r} where {task.name} reads {', '.join(task.text)}.")
        if not all(map(str.strip, texts)):
            raise DataError(f"Row {number}: the text is empty.")
        return self._trimmed(texts)

    @abstractmethod
    def unknown(self, task: "Task", texts: tuple[str, ...]) -> Any:
        """Return a placeholder for a missing target."""

    def reader(self, task: "Task", columns: Columns, labelled: bool = True) -> Reader:
        """Return a function that turns a row into an example; BadRow lists all its problems."""
        texts = self.texts(task, columns)
        if not labelled:
            return lambda values: (found := texts(values), self.unknown(task, found))
        target = self.target(task, columns)

        def read(values: list[Any]) -> Example:
            try:
                read_texts = texts(values)
            except BadRow as bad:
                raise BadRow("; ".join([str(bad), *_reason(lambda: target(values, ("", "")))])) from None
            return read_texts, target(values, read_texts)

        return read

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Return the split as token ids."""
        from tombola.tasks.encoding import encode_texts

        return encode_texts(split, tokenizer, max_length)

    def encode_scored(
        self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int
    ) -> "Encoded":
        """Return the split as token ids for evaluation, if they differ from those for training."""
        return self.encode(split, tokenizer, max_length)

    def estimate_inputs(self, split: "Split", max_length: int) -> int | None:
        """Return about how many inputs a split is encoded as, before it is tokenised; None if one per example."""
        return None

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return the collator of encoded examples. `seed` is for collators with randomness."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer)

    def head(self, task: "Task") -> dict[str, Any]:
        """Return the config entries of the head, unless it is pre-trained: names of the outputs, or their number."""
        if self.pretrained_head:
            return {}
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
"""The kinds of task, by the name used as `kind` in task files."""


def kind_of(task: "Task") -> TaskKind:
    """Return the kind of a task."""
    return task_kinds[task.kind].of(task)


def settings_of(task: "Task", expected: type[S]) -> S:
    """Return the settings of a task, which are those of its kind."""
    settings = task.kind_settings
    assert isinstance(settings, expected)
    return settings


def encode(split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
    """Tokenise a split in the way of its kind: texts are truncated at `max_length`, contexts split into windows …"""
    return kind_of(split.task).encode(split, tokenizer, max_length)


def collate_of(task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int = 0) -> "Collate":
    """Return the collator of a task's encoded data. `seed` matters only for masked language modelling."""
    return kind_of(task).collate(task, tokenizer, seed)


def _reason(read: Callable[[], Any]) -> list[str]:
    """Return why a value cannot be read, if so."""
    try:
        read()
    except BadRow as bad:
        return [str(bad)]
    return []
