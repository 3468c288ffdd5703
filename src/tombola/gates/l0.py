"""The L0 term: a price on open gates that is the same for all. (Louizos et al. 2018; Robust Tickets, §3.2)"""

from __future__ import annotations

from math import isfinite, sqrt
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.gates.base import Budget, Moment, budgets

if TYPE_CHECKING:
    pass

MEMORY = 0.95
"""How much of the mean square of the loss's derivatives is left after a step."""


@budgets.register
class L0(Budget):
    """λ·R, with R the mean openness over all units; any sparsity can be drawn from the scores afterwards.

    A λ that is right for one number of units, model and loss is wrong for others by orders of magnitude: too small,
    and the scores end in a random order; too large, and all fall alike. So it is set in proportion to the loss's own
    derivatives by the scores, unless `weight` says it. The released code takes the mean over matrices of their means,
    and counts the entries of a dictionary where the schedule of λ counts steps.
    """

    knows_sparsity: ClassVar[bool] = False

    kind: Literal["l0"] = "l0"
    relative: float = Field(
        1.0,
        ge=0,
        description="λ once it is fully there, for each unit, as a share of the root mean square of the loss's "
        "derivatives by the scores",
    )
    weight: float | None = Field(
        None, ge=0, description="λ itself, as papers give it, in place of `relative`; published: 0.5 and 0.1"
    )
    begin: float = Field(0.1, ge=0, le=1, description="share of the steps before which λ is 0")
    full: float = Field(
        0.4, ge=0, le=1, description="share of the steps from which λ is whole; linear between"
    )

    @model_validator(mode="after")
    def _begins_before_it_is_full(self) -> Self:
        if self.begin > self.full:
            raise ValueError(f"begin: {self.begin} comes after full: {self.full}")
        return self

    def ramp(self, share: float) -> float:
        """How much of λ is there when a share of the search is done."""
        if share >= self.full:
            return 1.0
        return max(0.0, share - self.begin) / (self.full - self.begin)

    def pressure(self, now: Moment) -> float:
        """λ."""
        if self.weight is not None:
            return self.weight * self.ramp(now.share)
        square, steps = (float(number) for number in now.multipliers[:2])
        size = now.gradient()
        if isfinite(size):  # 16-bit gradients may overflow: such a step is skipped
            memory = min(MEMORY, steps / (steps + 1))  # a plain mean of the first steps
            square = memory * square + (1 - memory) * size**2
            now.multipliers[:2] = now.multipliers.new_tensor([square, steps + 1])
        return self.relative * self.ramp(now.share) * sqrt(square)
