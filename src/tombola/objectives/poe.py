"""Product of experts: examples that the bias model explains give no gradient. (Clark et al. 2019)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.debiasing import Debiasing, DebiasingLoss
from tombola.objectives.settings import loss

if TYPE_CHECKING:
    import torch.nn.functional as F
    from torch import Tensor
else:
    F = lazy_module("torch.nn.functional")


class PoELoss(DebiasingLoss):
    """Settings of the product of experts."""

    kind: Literal["poe"] = "poe"


@loss(PoELoss)
@dataclass
class PoE(Debiasing):
    """Product of experts: cross-entropy of the model's and the bias model's probabilities multiplied."""

    settings: PoELoss = field(default_factory=PoELoss)

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """CE(log_softmax(logits) + b, y)."""
        return F.cross_entropy(logits.float().log_softmax(-1) + self.bias(logits, batch), batch["labels"])
