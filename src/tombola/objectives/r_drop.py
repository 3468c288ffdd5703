"""R-Drop: make two passes with different dropout agree. (Liang et al. 2021)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tombola.objectives import Batch, LogitLoss, Objective

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class RDrop(Objective):
    """R-Drop around any loss of logits: the mean loss of two dropout passes, plus α times their disagreement.

    L = ½·(L₁ + L₂) + α·½·(KL(p₁‖p₂) + KL(p₂‖p₁)), with gradients on both sides; for regression the disagreement is
    the mean squared difference. The paper (eq. 4) adds the two losses, its code averages them; we average, so that α
    = 0 is the plain loss and α matches the published settings.
    """

    inner: LogitLoss
    alpha: float

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean over the batch's items, from one pass of the doubled batch."""
        from tombola.objectives.passes import disagreement, two_passes

        first, second = two_passes(model, batch)
        plain = 0.5 * (self.inner.of_logits(first, batch) + self.inner.of_logits(second, batch))
        return plain + self.alpha * disagreement(first, second, batch["labels"])

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)
