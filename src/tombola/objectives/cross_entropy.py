"""The plain objective: cross-entropy over classes, squared error where the labels are real numbers."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from tombola.objectives import Batch, LogitLoss, objectives


@objectives("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy(LogitLoss):
    """Mean cross-entropy from the logits, with optional label smoothing; mean squared error for regression.

    Labels of −100 are no items, so that masked language modelling needs nothing else; the start and the end of
    an answer are two items, each a choice among the tokens.
    """

    label_smoothing: float = 0.0

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The mean over the batch's items."""
        labels = batch["labels"]
        if labels.is_floating_point():
            return F.mse_loss(logits.squeeze(-1).float(), labels)
        return F.cross_entropy(
            logits.flatten(0, -2).float(),
            labels.flatten(),
            ignore_index=-100,
            label_smoothing=self.label_smoothing,
        )
