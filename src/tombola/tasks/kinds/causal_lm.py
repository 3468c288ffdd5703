"""Causal language modelling: predict every token of a text from those before it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.tasks.definition import Layout
from tombola.tasks.documents import Division, document_table, joined_rows
from tombola.tasks.kinds import KindSettings, settings_of, task_kinds
from tombola.tasks.kinds.decoders import DecoderKind
from tombola.tasks.lines import ending_of
from tombola.tasks.passages import without_blanks
from tombola.tasks.readers import Table, open_table
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


class CausalSettings(KindSettings):
    """What counts as a document, and how documents are packed."""

    documents: Division = Field(
        "auto",
        description="how text files are divided into documents: at headings ` = Title = `, by file, at blank lines or "
        "by line; auto: at headings if the text begins with one, else by file",
    )
    block_size: int | None = Field(
        None,
        gt=1,
        description="tokens per block, which is packed with documents; by default the training's max_length",
    )


@task_kinds("causal-lm")
class CausalLM(DecoderKind):
    """Plain text: a text file or a folder of them, or a table with one document per row."""

    about = "the next word of any text, for decoders"
    text_columns = (1,)
    keeps_blanks = True
    settings = CausalSettings
    evaluator = "documents"

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """Read tables by their suffix, and anything else as plain text; a folder means all its .txt files."""
        if file.is_file() and ending_of(file) in (".tsv", ".csv", ".json", ".jsonl", ".parquet"):
            return open_table(file, layout)
        column = layout.map.get(task.text[0], task.text)[0]
        return document_table(file, column, settings_of(task, CausalSettings).documents, layout.encoding)

    def rows(self, task: "Task", columns: Columns) -> Table:
        """Return documents, which may span several rows, without blank ones."""
        table, names = columns.table, columns.layout.map.get(task.text[0], task.text)
        if len(names) == 1 and names[0] in table.columns:
            table = joined_rows(
                table, table.columns.index(names[0]), settings_of(task, CausalSettings).documents
            )
        return without_blanks(table)

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], None]:
        """Return no target: the text itself is predicted."""
        return lambda values, texts: None

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> None:
        """Return None."""
        return None

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Encode the split as packed blocks."""
        from tombola.tasks.packing import pack_documents

        return pack_documents(
            split, tokenizer, max_length, settings_of(split.task, CausalSettings).block_size
        )

    def estimate_inputs(self, split: "Split", max_length: int) -> int:
        """Estimate the number of packed blocks."""
        from tombola.tasks.estimating import estimate_blocks

        return estimate_blocks(split, settings_of(split.task, CausalSettings).block_size or max_length)
