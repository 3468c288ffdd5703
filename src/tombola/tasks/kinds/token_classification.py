"""Token classification: a tag for every word of a sentence, such as the entities of NER."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tombola.errors import DataError
from tombola.tasks.conll import conll_table, is_table
from tombola.tasks.definition import Layout
from tombola.tasks.kinds import Row, TaskKind, task_kinds
from tombola.tasks.readers import BadRow, Table, open_table
from tombola.tasks.rows import Columns
from tombola.tasks.tags import entity_types, to_iob2

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Collate, Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


@task_kinds("token-classification")
class TokenClassification(TaskKind):
    """A tag per word. The text of an example is its words joined by spaces, its target their tag indices.

    Tags with `B-` and `I-` are entities in the IOB2 scheme; others, such as parts of speech, are independent.
    """

    about = "a tag for every word, such as named entities"
    text_columns = (1,)
    fewest_labels = 2
    model = "AutoModelForTokenClassification"
    evaluator = "tags"

    def check(self, task: "Task") -> None:
        """Check that entity tags include `O`, and a `B-` for each `I-`."""
        super().check(task)
        tags = set(task.labels or ())
        types = entity_types(tags)
        if types:
            wanted = {"O", *(f"{prefix}-{name}" for name in types for prefix in "BI")}
            if tags != wanted:
                wrong = min(tags ^ wanted)
                problem = "is missing" if wrong in wanted else "is not an IOB2 tag (O, B-TYPE, I-TYPE)"
                raise ValueError(f"labels: {wrong!r} {problem}; entities need O, and B- and I- of each type")
        elif any(metric.startswith("entity_") for metric in task.metrics):
            raise ValueError(
                "metrics: entity_… count entities, but no label begins with B-; use token_accuracy"
            )

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """Read tables with lists of words and tags by their suffix, and anything else as CoNLL."""
        return open_table(file, layout) if is_table(file, task, layout) else conll_table(file, task, layout)

    def texts(self, task: "Task", columns: Columns) -> Callable[[list[Any]], tuple[str, ...]]:
        """Return a function that reads the words joined by spaces."""
        (name,) = task.text
        value = columns.value(name)
        return lambda values: (" ".join(_words(name, value(values))),)

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], list[int]]:
        """Return a function that reads the tag indices from the column `tags`."""
        value, scheme = columns.value("tags"), columns.layout.tag_scheme
        names = task.labels or []
        numbers, entities = {name: number for number, name in enumerate(names)}, bool(entity_types(names))
        aliases = columns.layout.values

        def read(values: list[Any], texts: tuple[str, ...]) -> list[int]:
            tags = [aliases.get(tag, tag) for tag in _words("tags", value(values))]
            words = texts[0].split(" ") if texts[0] else tags
            if len(words) != len(tags):
                raise BadRow(f"{len(tags)} tags for {len(words)} words: each word needs one")
            if entities:
                tags = to_iob2(tags, scheme, words)
            for word, tag in zip(words, tags, strict=True):
                if tag not in numbers:
                    raise BadRow(f"unknown tag {tag!r} of {word!r}; expected one of {', '.join(names)}")
            return [numbers[tag] for tag in tags]

        return read

    def given(self, task: "Task", row: Row, number: int) -> tuple[str, ...]:
        """Return a sentence given as text with spaces between its words, or as a list of words."""
        words = row[task.text[0]] if isinstance(row, Mapping) and task.text[0] in row else row
        try:
            return (" ".join(_words(task.text[0], words)),)
        except BadRow as bad:
            raise DataError(f"Row {number}: {bad}.") from None

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> list[int]:
        """Return the first tag for each word."""
        return [0] * len(texts[0].split(" "))

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Encode sub-words, with the tag on the first of each word."""
        from tombola.tasks.tagged import encode_tagged

        return encode_tagged(split, tokenizer, max_length)

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return a collator that pads labels with −100."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer, token_labels=True)


def _words(name: str, raw: Any) -> list[str]:
    """Return the words of a list, or of a text with spaces between them."""
    if isinstance(raw, str):
        words = raw.split()
    elif isinstance(raw, list | tuple):
        words = [str(word) for word in raw]
    else:
        raise BadRow(f"column {name!r} is neither a list nor text with spaces: {raw!r}")
    if not words:
        raise BadRow(f"no words in column {name!r}")
    for word in words:
        if not word or any(map(str.isspace, word)):
            raise BadRow(
                f"column {name!r}: {word!r} is not a word: words must not be empty or contain spaces"
            )
    return words
