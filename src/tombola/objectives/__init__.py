"""What is minimised. An objective turns a model and a batch into a loss and knows nothing of training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn

    Batch = Mapping[str, Tensor]
else:
    Batch = Mapping
"""A padded batch: the model's inputs, `labels`, and whatever columns an objective asks for."""


INPUTS = ("input_ids", "inputs_embeds", "attention_mask", "token_type_ids", "position_ids")
"""The columns of a batch that go into the model."""


def inputs_of(batch: Batch) -> dict[str, Tensor]:
    """The part of a batch that the model reads."""
    return {name: batch[name] for name in INPUTS if name in batch}


def logits_of(output: Mapping[str, Tensor]) -> Tensor:
    """A model's logits; those for the start and the end of an answer as (examples, 2, tokens)."""
    import torch

    if "logits" in output:
        return output["logits"]
    return torch.stack([output["start_logits"], output["end_logits"]], dim=1)


class Objective(Protocol):
    """A loss, and how its gradient is taken. A class that inherits from it only has to say `loss`."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the batch's items."""
        ...

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Take the gradient by `backward` and return the loss for the log.

        An adversarial objective overrides this to call `backward(loss / K)` after each of its K passes; what
        `backward` is given over one step must add up to the mean loss of the batch.
        """
        loss = self.loss(model, batch)
        backward(loss)
        return loss.detach()

    def at(self, share: float) -> None:
        """Hear which share of the training is done, from 0 to 1, before every step. Most need not know."""
        return None


class LogitLoss(Objective, Protocol):
    """An objective that needs one pass of the model, and of that the logits: it only has to say `of_logits`."""

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The mean loss over the batch's items, from logits that are already there."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the batch's items."""
        return self.of_logits(logits_of(model(**inputs_of(batch))), batch)
