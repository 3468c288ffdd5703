"""Texts that are longer than a model's input: counted over all data sets of a call, and optionally read in windows."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tombola.errors import TombolaError
from tombola.evaluation.evaluators import evaluators
from tombola.tasks import Encoded, Split, Task, kind_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

INSTEAD = {
    "question-answering": "contexts are always read in windows: set doc_stride in the task's settings",
    "token-classification": "words are tagged one by one: split long sentences",
}
"""Advice for kinds whose predictions are not the mean over windows."""


@dataclass
class LongTexts:
    """How to treat texts that are too long.

    Args:
        stride: Tokens from the start of a window to that of the next; None truncates texts.
    """

    stride: int | None = None
    counts: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By data set: the number of longer texts, of all texts, and of tokens read at once."""

    def check(self, task: Task) -> None:
        """Raise an error if a task cannot be predicted in windows.

        Args:
            task: The task.
        """
        if self.stride is None:
            return
        if self.stride < 1:
            raise TombolaError(f"stride: takes 1 token or more, not {self.stride}")
        kind = kind_of(task)
        if not (kind.reads_whole_texts and evaluators[kind.evaluator].joins_windows):
            instead = INSTEAD.get(task.kind, "there is no single prediction per text: leave out the stride")
            raise TombolaError(
                f"stride: only works for classification, multi-label and regression tasks, but {task.name} is a "
                f"{task.kind} task; {instead}"
            )

    def take(self, split: Split, tokenizer: "PreTrainedTokenizerBase", data: Encoded, limit: int) -> Encoded:
        """Count the truncated texts, and replace them with windows if a stride is set.

        Args:
            split: The texts.
            tokenizer: The tokenizer.
            data: Their truncated tokens.
            limit: The maximum number of tokens of an input.
        """
        from tombola.tasks.text_windows import in_windows, longer_texts

        self.check(split.task)
        if not kind_of(split.task).reads_whole_texts:
            return data
        limit = min(limit, tokenizer.model_max_length)
        longer = longer_texts(split, tokenizer, data, limit)
        if not longer:
            return data
        self.counts[f"{split.task.name}/{split.name}"] = (len(longer), len(split), limit)
        if self.stride is None:
            return data
        return in_windows(split, tokenizer, data, longer, limit, self.stride)

    def count(
        self,
        name: str,
        texts: Sequence[tuple[str, ...]],
        tokenizer: "PreTrainedTokenizerBase",
        limit: int,
    ) -> None:
        """Count the texts that are too long.

        Args:
            name: The data set.
            texts: Its texts.
            tokenizer: The tokenizer.
            limit: The maximum number of tokens of an input.
        """
        from tombola.tasks.text_windows import are_longer

        limit = min(limit, tokenizer.model_max_length)
        if longer := sum(are_longer(texts, tokenizer, limit)):
            self.counts[name] = (longer, len(texts), limit)

    def warn(self, remedy: str | None = None) -> None:
        """Log how many texts are longer than the model's input.

        Args:
            remedy: Advice, if it is not a stride.
        """
        if note := self.note(remedy):
            logger.warning("%s", note)

    def note(self, remedy: str | None = None) -> str | None:
        """Return how many texts are longer than the model's input, and how they were treated.

        Args:
            remedy: Advice, if it is not a stride.
        """
        if not self.counts:
            return None
        ((*_, limit), *_) = self.counts.values()
        names = {name: name.removesuffix("/unlabelled") for name in self.counts}
        counts = ", ".join(
            f"{longer:,} of {whole:,}" + ("" if name.endswith("/unlabelled") else f" in {names[name]}")
            for name, (longer, whole, _) in self.counts.items()
        )
        if self.stride is None:
            remedy = remedy or f"--stride {max(limit // 2, 1)} reads them completely, in windows"
            return f"texts longer than {limit} tokens are truncated: {counts}; {remedy}"
        return f"texts longer than {limit} tokens were read in windows, {self.stride} tokens apart: {counts}"
