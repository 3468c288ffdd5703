"""What kinds of task for decoders have in common."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from tombola.tasks.kinds import TaskKind

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from tombola.tasks.continuations import Continuation
    from tombola.tasks.encoding import Collate, Encoded
    from tombola.tasks.split import Split
    from tombola.tasks.task import Task


class DecoderKind(TaskKind):
    """A kind of task for a decoder with its pre-trained head."""

    model = "AutoModelForCausalLM"
    pretrained_head = "a causal language model"

    def collate(self, task: "Task", tokenizer: "PreTrainedTokenizerBase", seed: int) -> "Collate":
        """Return a collator that pads labels with −100."""
        from tombola.tasks.encoding import Collate

        return Collate(tokenizer, token_labels=True)


class AnswerKind(DecoderKind):
    """A kind of task whose answers are compared by their likelihood after a prompt."""

    @abstractmethod
    def answers(self, split: "Split") -> "list[Continuation]":
        """Return the prompt of each example with each of its answers."""

    def encode(self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int) -> "Encoded":
        """Encode prompts with their correct answers, for training."""
        from tombola.tasks.continuations import encode_continuations

        correct = [row for row in self.answers(split) if row.choice == split.labels[row.example]]
        return encode_continuations(correct, tokenizer, max_length)

    def encode_scored(
        self, split: "Split", tokenizer: "PreTrainedTokenizerBase", max_length: int
    ) -> "Encoded":
        """Encode prompts with each of their answers."""
        from tombola.tasks.continuations import encode_continuations

        return encode_continuations(self.answers(split), tokenizer, max_length)
