"""Confidence regularisation: learn from a teacher, less confident where the bias model is sure. (Utama et al. 2020)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

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


class ConfidenceLoss(DebiasingLoss):
    """Settings of confidence regularisation."""

    needs_teacher: ClassVar[bool] = True

    kind: Literal["confidence"] = "confidence"


@loss(ConfidenceLoss)
@dataclass
class Confidence(Debiasing):
    """Confidence regularisation: learn from a teacher whose confidence is reduced where the bias model is sure."""

    settings: ConfidenceLoss = field(default_factory=ConfidenceLoss)

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """−Σ target·log p, with target ∝ t^(1−β)."""
        modesty = -of_labels(self.bias(logits, batch), batch).expm1()
        teacher = self.column("teacher", "a teacher's probabilities", logits, batch)
        tiny = torch.finfo(torch.float32).tiny
        target = (modesty[:, None] * teacher.clamp_min(tiny).log()).softmax(-1)
        return F.cross_entropy(logits.float(), target)
