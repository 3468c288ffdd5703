"""The plain objective: cross-entropy over classes or over each label, squared error for real numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.objectives import ANSWERABLE, Batch, LogitLoss, is_multi_label
from tombola.objectives.settings import LossSettings, loss

if TYPE_CHECKING:
    import torch.nn.functional as F
    from torch import Tensor
else:
    F = lazy_module("torch.nn.functional")


class CrossEntropyLoss(LossSettings):
    """Settings of the plain loss."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: float = Field(
        0.0, ge=0, lt=1, description="share of the target spread over all classes or possible answers"
    )


@loss(CrossEntropyLoss)
@dataclass(frozen=True)
class CrossEntropy(LogitLoss):
    """Mean cross-entropy from the logits, with optional label smoothing; mean squared error for regression.

    The labels, set by the kind of task, determine the loss: integers are classes, a row of floats per example holds
    the 0 or 1 of every label (binary cross-entropy), a single float is a value. Labels of −100 are ignored, as masked
    language modelling requires; the start and the end of an answer are two items, each a choice among the tokens, of
    which smoothing covers those that can begin or end an answer.
    """

    settings: CrossEntropyLoss = field(default_factory=CrossEntropyLoss)

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean over the batch's items."""
        labels, smoothing = batch["labels"], self.settings.label_smoothing
        if labels.is_floating_point():
            if is_multi_label(labels):
                targets = labels * (1 - smoothing) + 0.5 * smoothing
                return F.binary_cross_entropy_with_logits(logits.float(), targets)
            return F.mse_loss(logits.squeeze(-1).float(), labels)
        if smoothing and ANSWERABLE in batch:
            targets = F.one_hot(labels, logits.shape[-1]) * (1 - smoothing)
            possible = batch[ANSWERABLE][:, None].float()
            targets = targets + smoothing * possible / possible.sum(-1, keepdim=True)
            return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten(0, -2))
        return F.cross_entropy(
            logits.flatten(0, -2).float(), labels.flatten(), ignore_index=-100, label_smoothing=smoothing
        )
