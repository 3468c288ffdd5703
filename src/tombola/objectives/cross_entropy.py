"""The plain objective: cross-entropy over classes, squared error where the labels are real numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch, LogitLoss
from tombola.objectives.settings import LossSettings, loss

if TYPE_CHECKING:
    import torch.nn.functional as F
    from torch import Tensor
else:
    F = lazy_module("torch.nn.functional")


class CrossEntropyLoss(LossSettings):
    """Settings of the plain loss."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: float = Field(0.0, ge=0, lt=1, description="share of the target spread over all classes")


@loss(CrossEntropyLoss)
@dataclass(frozen=True)
class CrossEntropy(LogitLoss):
    """Mean cross-entropy from the logits, with optional label smoothing; mean squared error for regression.

    Labels of −100 are no items, so that masked language modelling needs nothing else; the start and the end of
    an answer are two items, each a choice among the tokens.
    """

    settings: CrossEntropyLoss = field(default_factory=CrossEntropyLoss)

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The mean over the batch's items."""
        labels = batch["labels"]
        if labels.is_floating_point():
            return F.mse_loss(logits.squeeze(-1).float(), labels)
        return F.cross_entropy(
            logits.flatten(0, -2).float(),
            labels.flatten(),
            ignore_index=-100,
            label_smoothing=self.settings.label_smoothing,
        )
