"""The L0 penalty: the same price for every open gate. (Louizos et al. 2018; Robust Tickets, §3.2)"""

from __future__ import annotations

from math import isfinite, sqrt
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.gates.base import Budget, Moment, budgets

MEMORY = 0.95
"""Decay of the running mean square of the loss gradients."""


@budgets.register
class L0(Budget):
    """λ·R, with R the mean openness over all units; any sparsity can be drawn from the scores afterwards.

    A λ that suits one model, loss and number of units is wrong for others by orders of magnitude: if it is too small,
    the scores end in a random order; if too large, all fall alike. So λ is proportional to the size of the loss
    gradients of the scores, unless `weight` fixes it. The released code averages over matrices the means of each, and
    counts the entries of a dictionary where the schedule of λ should count steps.
    """

    knows_sparsity: ClassVar[bool] = False

    kind: Literal["l0"] = "l0"
    relative: float = Field(
        1.0,
        ge=0,
        description="final λ per unit, relative to the root mean square of the loss gradients of the scores",
    )
    weight: float | None = Field(
        None, ge=0, description="λ itself, as given in papers, instead of `relative`; published: 0.5 and 0.1"
    )
    begin: float = Field(
        0.1, ge=0, le=1, description="share of the steps after which λ starts to rise from 0"
    )
    full: float = Field(
        0.4,
        ge=0,
        le=1,
        description="share of the steps after which λ is constant; it rises linearly in between",
    )

    @model_validator(mode="after")
    def _check_ramp(self) -> Self:
        if self.begin > self.full:
            raise ValueError(f"begin: {self.begin} comes after full: {self.full}")
        return self

    @model_validator(mode="after")
    def _check_weight(self) -> Self:
        if self.weight is not None and self.relative != type(self).model_fields["relative"].default:
            raise ValueError("relative: is replaced by weight; remove one of them")
        return self

    def ramp(self, share: float) -> float:
        """Return the fraction of λ that applies at this point of the search."""
        if share >= self.full:
            return 1.0
        return (share - self.begin) / (self.full - self.begin) if share > self.begin else 0.0

    def pressure(self, now: Moment) -> float:
        """Return λ."""
        if self.weight is not None:
            return self.weight * self.ramp(now.share)
        square, steps = (float(number) for number in now.multipliers[:2])
        size = now.gradient()
        if isfinite(size):  # 16-bit gradients may overflow: such a step is skipped
            memory = min(MEMORY, steps / (steps + 1))  # a plain mean of the first steps
            square = memory * square + (1 - memory) * size**2
            now.multipliers[:2] = now.multipliers.new_tensor([square, steps + 1])
        return self.relative * self.ramp(now.share) * sqrt(square)
