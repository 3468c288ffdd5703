"""The plain objective: cross-entropy over classes, squared error where the labels are real numbers."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from tombola.objectives import Batch, Objective, inputs_of, logits_of, objectives


@objectives("cross_entropy")
@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Mean cross-entropy from the logits, with optional label smoothing; mean squared error for regression.

    Labels of −100 are no items, so that masked language modelling needs nothing else; the start and the end of
    an answer are two items, each a choice among the tokens.
    """

    label_smoothing: float = 0.0

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean over the batch's items."""
        return self.of_logits(logits_of(model(**inputs_of(batch))), batch["labels"])

    def of_logits(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The same from logits that are already there."""
        if labels.is_floating_point():
            return F.mse_loss(logits.squeeze(-1).float(), labels)
        return F.cross_entropy(
            logits.flatten(0, -2).float(),
            labels.flatten(),
            ignore_index=-100,
            label_smoothing=self.label_smoothing,
        )
