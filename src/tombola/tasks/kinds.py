"""What each kind of task makes of its data: how a split is encoded, and how its examples become a batch."""

from typing import TYPE_CHECKING

from tombola.tasks.blocks import MaskTokens, encode_passages
from tombola.tasks.encoding import Collate, Encoded, encode_texts
from tombola.tasks.split import Split
from tombola.tasks.task import Task
from tombola.tasks.windows import encode_questions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def encode(split: Split, tokenizer: "PreTrainedTokenizerBase", max_length: int) -> Encoded:
    """Tokenise a split: texts are cut at `max_length`, contexts go in windows, passages are packed in blocks."""
    match split.task.kind:
        case "question-answering":
            return encode_questions(split, tokenizer, max_length)
        case "masked-lm":
            return encode_passages(split, tokenizer, max_length)
        case _:
            return encode_texts(split, tokenizer, max_length)


def collate_of(task: Task, tokenizer: "PreTrainedTokenizerBase", seed: int = 0) -> Collate:
    """The collator of a task's encoded data. `seed` matters to masked language modelling alone."""
    match task.kind:
        case "question-answering":
            return Collate(tokenizer, padding_side="right")  # labels are positions: nothing may shift them
        case "masked-lm":
            return MaskTokens(tokenizer, seed)
        case kind:
            return Collate(tokenizer, regression=kind == "regression")
