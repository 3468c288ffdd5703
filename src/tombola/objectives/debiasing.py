"""Losses against a known bias, given a shallow model that has only the bias. (SRNets, §3.2)

b is the bias model's log-probabilities (the batch's column `bias`), β = exp b_y the probability that it gives
to the right class, t a teacher's probabilities (the column `teacher`). With annealing, b becomes b^θ renormalised.
All of this is for training: evaluation reads the plain logits.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from tombola.errors import TombolaError
from tombola.objectives import Batch, LogitLoss, objectives

_TINY = torch.finfo(torch.float32).tiny


@dataclass
class Debiasing(LogitLoss):
    """What these losses share: the bias model's log-probabilities as they are at this point of the training."""

    kind: ClassVar[str]

    anneal: tuple[float, float] = (1.0, 1.0)
    _exponent: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.at(0.0)

    def at(self, share: float) -> None:
        """Set the exponent θ of the bias model's probabilities, linear over the training."""
        start, end = self.anneal
        self._exponent = start + (end - start) * share

    def bias(self, logits: Tensor, batch: Batch) -> Tensor:
        """b^θ renormalised, as log-probabilities of shape (examples, classes)."""
        if batch["labels"].is_floating_point() or logits.dim() != 2:
            raise TombolaError(
                f"loss: {self.kind} is for tasks with one class per example, and this task has none; "
                "use loss: {kind: cross_entropy}"
            )
        bias = self.column("bias", "a bias model's log-probabilities", logits, batch)
        return (self._exponent * bias).log_softmax(-1)

    def column(self, name: str, what: str, logits: Tensor, batch: Batch) -> Tensor:
        """A column of the training data with a value for each class."""
        if name not in batch:
            raise TombolaError(
                f"loss: {self.kind} needs {what}, and the training data has no column {name!r}; "
                "a recipe's `bias:` names the bias model, whose predictions are then added"
            )
        values = batch[name]
        if values.shape != logits.shape:
            raise TombolaError(
                f"bias: the column {name!r} has {values.shape[-1]} values per example, but the task has "
                f"{logits.shape[-1]} classes"
            )
        return values.float()


def _of_labels(log_probabilities: Tensor, batch: Batch) -> Tensor:
    return log_probabilities.gather(-1, batch["labels"][:, None]).squeeze(-1)


@objectives("poe")
class PoE(Debiasing):
    """Product of experts: cross-entropy of the model's and the bias model's probabilities multiplied.

    What the bias model already explains gives no gradient, so the model learns the rest. (Clark et al. 2019)
    """

    kind = "poe"

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """CE(log_softmax(logits) + b, y)."""
        return F.cross_entropy(logits.float().log_softmax(-1) + self.bias(logits, batch), batch["labels"])


@objectives("reweighting")
class Reweighting(Debiasing):
    """Example reweighting: an example counts 1 − β, the less the surer the bias model is. (Clark et al. 2019)

    The mean is weighted within each batch: Σ(1−β)·CE / Σ(1−β), also where gradients of several are accumulated.
    """

    kind = "reweighting"

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Σ(1−β)·CE / Σ(1−β); 0 for a batch that the bias model explains wholly."""
        weights = -_of_labels(self.bias(logits, batch), batch).expm1()
        losses = F.cross_entropy(logits.float(), batch["labels"], reduction="none")
        return (weights * losses).sum() / weights.sum().clamp_min(_TINY)


@objectives("confidence")
class Confidence(Debiasing):
    """Confidence regularisation: learn from a teacher, less sure of itself where the bias model is sure.

    (Utama et al. 2020)
    """

    kind = "confidence"

    def of_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """−Σ target·log p, with target ∝ t^(1−β)."""
        modesty = -_of_labels(self.bias(logits, batch), batch).expm1()
        teacher = self.column("teacher", "a teacher's probabilities", logits, batch)
        target = (modesty[:, None] * teacher.clamp_min(_TINY).log()).softmax(-1)
        return F.cross_entropy(logits.float(), target)
