"""Consistency: an example and its changed copy shall get the same answer. (Xie et al. 2020, UDA; Zheng et al. 2016)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tombola.objectives import Batch, LogitLoss

if TYPE_CHECKING:
    from torch import Tensor

COPY = "copy_of"
"""The column that says how many rows above a copy its original stands; 0 for rows that are no copies."""


@dataclass(frozen=True)
class Consistent(LogitLoss):
    """A loss of logits over all rows, originals and copies, and the divergence between each copy and its original.

    The divergence is ½·(KL(p‖q) + KL(q‖p)), both sides with gradient, as a mean over the copies; for regression the
    mean squared difference. A copy costs as much as any other row of the batch.
    """

    inner: LogitLoss
    weight: float

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """The inner loss, and `weight` times the divergence where the batch holds copies."""
        from tombola.objectives.passes import disagreement

        loss = self.inner.of_logits(logits, batch)
        copies = batch[COPY].nonzero().squeeze(-1)
        if not len(copies):
            return loss
        originals = copies - batch[COPY][copies]
        apart = disagreement(logits[originals], logits[copies], batch["labels"][copies])
        return loss + self.weight * apart

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)
