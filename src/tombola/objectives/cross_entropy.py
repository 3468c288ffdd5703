"""The plain objective: cross-entropy over classes or over each label, squared error for real numbers."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from tombola.objectives import Batch, LogitLoss, objectives
from tombola.objectives.passes import is_multi_label


@objectives("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy(LogitLoss):
    """Mean cross-entropy from the logits, with optional label smoothing; mean squared error for regression.

    Which of them follows from the labels, and these from the kind of task: whole numbers are classes, a row of real
    numbers for each example holds the 0 or 1 of every label (binary cross-entropy), a single one is a value.

    Labels of −100 are no items, so that masked language modelling needs nothing else; the start and the end of
    an answer are two items, each a choice among the tokens.
    """

    label_smoothing: float = 0.0

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The mean over the batch's items."""
        labels = batch["labels"]
        if labels.is_floating_point():
            if is_multi_label(labels):
                targets = labels * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
                return F.binary_cross_entropy_with_logits(logits.float(), targets)
            return F.mse_loss(logits.squeeze(-1).float(), labels)
        return F.cross_entropy(
            logits.flatten(0, -2).float(),
            labels.flatten(),
            ignore_index=-100,
            label_smoothing=self.label_smoothing,
        )
