"""Shared parts of the losses against a known bias, captured by a shallow bias model. (SRNets, §3.2)

b is the bias model's log-probabilities (the batch's column `bias`), β = exp b_y its probability of the correct class,
t a teacher's probabilities (the column `teacher`). With annealing, b becomes b^θ renormalised. All of this applies to
training only: evaluation uses the plain logits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from tombola.errors import TombolaError
from tombola.objectives import Batch, LogitLoss
from tombola.objectives.settings import LossSettings

if TYPE_CHECKING:
    from torch import Tensor


class DebiasingLoss(LossSettings):
    """Common settings of these losses: the bias model's strength during training."""

    needs_bias: ClassVar[bool] = True

    anneal: tuple[float, float] = Field(
        (1.0, 1.0),
        description="exponent of the bias model's probabilities at the start and at the end of training, linear in "
        "between; 1: unchanged, 0: uniform",
    )

    @field_validator("anneal", mode="before")
    @classmethod
    def _check_anneal(cls, value: Any) -> Any:
        pair = isinstance(value, list | tuple) and len(value) == 2
        if not pair or not all(isinstance(part, int | float) and part >= 0 for part in value):
            raise ValueError(
                "takes two exponents of at least 0, for the start and the end of training, e.g. [1, 0.8]; not "
                f"{value!r}"
            )
        return value


@dataclass
class Debiasing(LogitLoss):
    """A loss with access to the bias model's log-probabilities at this point of the training."""

    settings: DebiasingLoss
    _exponent: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.at(0.0)

    def at(self, share: float) -> None:
        """Set the exponent θ of the bias model's probabilities, linear over the training."""
        start, end = self.settings.anneal
        self._exponent = start + (end - start) * share

    def bias(self, logits: Tensor, batch: Batch) -> Tensor:
        """b^θ renormalised, as log-probabilities of shape (examples, classes)."""
        if batch["labels"].is_floating_point() or logits.dim() != 2:
            raise TombolaError(
                f"loss: {self.settings.kind} needs a task with one class per example; "
                "use loss: {kind: cross_entropy}"
            )
        bias = self.column("bias", "a bias model's log-probabilities", logits, batch)
        return (self._exponent * bias).log_softmax(-1)

    def column(self, name: str, what: str, logits: Tensor, batch: Batch) -> Tensor:
        """Return a column of the training data with a value per class."""
        if name not in batch:
            raise TombolaError(
                f"loss: {self.settings.kind} needs {what}, but the training data has no column {name!r}; set `bias` "
                "in the recipe to add the predictions of a bias model"
            )
        values = batch[name]
        if values.shape != logits.shape:
            raise TombolaError(
                f"bias: the column {name!r} has {values.shape[-1]} values per example, but the task has "
                f"{logits.shape[-1]} classes"
            )
        return values.float()


def of_labels(log_probabilities: Tensor, batch: Batch) -> Tensor:
    """Return each example's log-probability of its label."""
    return log_probabilities.gather(-1, batch["labels"][:, None]).squeeze(-1)
