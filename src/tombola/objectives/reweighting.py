"""Example reweighting: the surer the bias model is of an example, the less the example counts. (Clark et al. 2019)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.debiasing import Debiasing, DebiasingLoss, of_labels
from tombola.objectives.settings import loss

if TYPE_CHECKING:
    import torch
    import torch.nn.functional as F
    from torch import Tensor
else:
    torch, F = lazy_module("torch"), lazy_module("torch.nn.functional")


class ReweightingLoss(DebiasingLoss):
    """Settings of example reweighting."""

    kind: Literal["reweighting"] = "reweighting"


@loss(ReweightingLoss)
@dataclass
class Reweighting(Debiasing):
    """Example reweighting: an example has weight 1 − β, less the surer the bias model is.

    The mean is weighted within each batch, Σ(1−β)·CE / Σ(1−β), even if gradients of several batches are accumulated.
    """

    settings: ReweightingLoss = field(default_factory=ReweightingLoss)

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return Σ(1−β)·CE / Σ(1−β); 0 for a batch that the bias model explains completely."""
        weights = -of_labels(self.bias(logits, batch), batch).expm1()
        losses = F.cross_entropy(logits.float(), batch["labels"], reduction="none")
        return (weights * losses).sum() / weights.sum().clamp_min(torch.finfo(torch.float32).tiny)
