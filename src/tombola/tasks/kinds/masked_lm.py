"""Masked language modelling: predict the masked tokens of any text."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.tasks.definition import Layout
from tombola.tasks.kinds import KindSettings, TaskKind, settings_of, task_kinds
from tombola.tasks.lines import ending_of
from tombola.tasks.passages import passage_table, without_blanks
from tombola.tasks.readers import Table, open_table
from tombola.tasks.rows import Columns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.encoding import Collate, Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


class MaskedSettings(KindSettings):
    """How text is packed and masked. The defaults are BERT's. (Devlin et al. 2019, §3.1)"""

    mlm_probability: float = Field(0.15, gt=0, lt=1, description="share of the tokens to predict")
    block_size: int | None = Field(
        None,
        gt=0,
        description="tokens per block, including special tokens; by default the training's max_length",
    )


@task_kinds("masked-lm")
class MaskedLM(TaskKind):
    """Plain text: one passage per line, a table with a text column, or a folder of text files."""

    about = "the hidden words of any text"
    text_columns = (1,)
    settings = MaskedSettings
    model = "AutoModelForMaskedLM"
    pretrained_head = "a masked language model"
    evaluator = "masked tokens"

    def open(self, task: "Task", file: Path, layout: Layout) -> Table:
        """Read tables by their suffix, and anything else as plain text; a folder means all its .txt files."""
        if file.is_file() and ending_of(file) in (".tsv", ".csv", ".json", ".jsonl", ".parquet"):
            return open_table(file, layout)
        return passage_table(file, layout.map.get(task.text[0], task.text)[0], layout.encoding)

    def rows(self, task: "Task", columns: Columns) -> Table:
        """Drop blank lines, which only separate passages."""
        return without_blanks(columns.table)

    def target(self, task: "Task", columns: Columns) -> Callable[[list[Any], tuple[str, ...]], None]:
        """Return no target: the text itself is predicted."""
        return lambda values, texts: None

    def unknown(self, task: "Task", texts: tuple[str, ...]) -> None:
        """Return None."""
        return None

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Encode the split as blocks of text."""
        from tombola.tasks.blocks import encode_passages

        return encode_passages(
            split, tokenizer, max_length, settings_of(split.task, MaskedSettings).block_size
        )

    def estimate_inputs(self, split: "Split", max_length: int) -> int:
        """Estimate the number of blocks."""
        from tombola.tasks.estimating import estimate_blocks

        return estimate_blocks(split, settings_of(split.task, MaskedSettings).block_size or max_length)

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return a collator that masks some tokens."""
        from tombola.tasks.blocks import MaskTokens

        return MaskTokens(tokenizer, seed, settings_of(task, MaskedSettings).mlm_probability)
