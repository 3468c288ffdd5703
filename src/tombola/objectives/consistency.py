"""Consistency: an example and its changed copy should get the same answer. (Xie et al. 2020, UDA; Zheng et al. 2016)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tombola.objectives import Batch, LogitLoss

if TYPE_CHECKING:
    from torch import Tensor

COPY = "copy_of"
"""The column with the distance in rows from a copy up to its original; 0 for rows that are not copies."""


@dataclass(frozen=True)
class Consistent(LogitLoss):
    """A loss over all rows, originals and copies, plus the divergence between each copy and its original.

    The divergence is ½·(KL(p‖q) + KL(q‖p)), averaged over the copies, with gradients on both sides; for regression it
    is the mean squared difference. A copy costs as much as any other row of the batch.
    """

    inner: LogitLoss
    weight: float

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the inner loss, plus `weight` times the divergence if the batch holds copies."""
        from tombola.objectives.passes import disagreement

        loss = self.inner.of_logits(logits, batch)
        copies = batch[COPY].nonzero().squeeze(-1)
        if not len(copies):
            return loss
        originals = copies - batch[COPY][copies]
        apart = disagreement(logits[originals], logits[copies], batch["labels"][copies])
        return loss + self.weight * apart

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)
