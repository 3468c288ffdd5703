"""Training objectives. An objective computes a loss from a model and a batch, independent of the training loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn

    Batch = Mapping[str, Tensor]
else:
    Batch = Mapping
"""A padded batch: the model's inputs, `labels`, and whatever columns an objective asks for."""


ANSWERABLE = "answerable"
"""The column that says of every token whether it can begin or end an answer."""


INPUTS = ("input_ids", "inputs_embeds", "attention_mask", "token_type_ids", "position_ids")
"""The columns of a batch that go into the model."""


def inputs_of(batch: Batch) -> dict[str, Tensor]:
    """Return the model's inputs from a batch."""
    return {name: batch[name] for name in INPUTS if name in batch}


def logits_of(output: Mapping[str, Tensor]) -> Tensor:
    """Return a model's logits; those for the start and the end of an answer as (examples, 2, tokens)."""
    import torch

    if "logits" in output:
        return output["logits"]
    return torch.stack([output["start_logits"], output["end_logits"]], dim=1)


def is_multi_label(labels: Tensor) -> bool:
    """Return whether a batch's labels are rows of 0 or 1 for every label."""
    return labels.is_floating_point() and labels.dim() == 2


def items_of(labels: Tensor) -> Tensor:
    """Return the number of items that a loss averages over: all real numbers, and classes other than −100."""
    import torch

    if labels.is_floating_point():
        return torch.tensor(labels.numel(), device=labels.device)
    return labels.ne(-100).sum()


class Objective(Protocol):
    """A loss and its backward pass. Subclasses only need to define `loss`."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss over the batch's items."""
        ...

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Call `backward` on the loss and return the loss for logging.

        An adversarial objective overrides this to call `backward(loss / K)` after each of its K passes; the losses
        passed to `backward` in one step must add up to the mean loss of the batch.
        """
        loss = self.loss(model, batch)
        backward(loss)
        return loss.detach()

    def at(self, share: float) -> None:
        """Receive the progress of the training, from 0 to 1, before every step. Most objectives ignore it."""
        return None


class LogitLoss(Objective, Protocol):
    """An objective that needs only the logits of one pass. Subclasses only need to define `of_logits`."""

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss over the batch's items, given the logits."""
        ...

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss over the batch's items."""
        return self.of_logits(logits_of(model(**inputs_of(batch))), batch)
