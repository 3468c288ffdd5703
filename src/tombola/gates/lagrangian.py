"""A sparsity target that gradients can follow. (Wang et al. 2020; against overshooting, Stooke et al. 2020)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.gates.base import Budget, Moment, budgets

if TYPE_CHECKING:
    pass

AHEAD = 40
"""Steps by which a change of the gap is carried on: about as long as Adam lets scores run after a change of mind."""


@budgets.register
class Lagrangian(Budget):
    """λ1·g + λ2·g², where g is the expected sparsity less the target: scores descend on it, λ1 and λ2 ascend.

    Plain ascent overshoots: scores keep on moving while λ1 is still being paid back. So λ1 ascends on the gap
    as it will be soon, in proportion to its own size, and the target rises ever more slowly.
    """

    kind: Literal["lagrangian"] = "lagrangian"
    rate: float = Field(1.0, gt=0, description="step size of the multipliers' ascent")
    warmup: float = Field(0.6, ge=0, le=1, description="share of the steps in which the target rises from 0")

    def target_at(self, share: float, target: float) -> float:
        """The sparsity wanted when a share of the search is done."""
        left = max(0.0, 1.0 - share / self.warmup) if self.warmup else 0.0
        return target * (1.0 - left**2)

    def pressure(self, now: Moment) -> float:
        """Ascend, then −(λ1 + 2·λ2·g): gates are pressed to shut where the expected sparsity falls short."""
        first: float
        second: float
        last: float
        first, second, last = now.multipliers.tolist()
        gap = 1.0 - now.openness() - self.target_at(now.share, now.target)
        soon = gap + AHEAD * (gap - last if now.share > 0 else 0.0)
        first += self.rate * soon * (1.0 + abs(first))
        second += self.rate * gap**2
        now.multipliers.copy_(now.multipliers.new_tensor([first, second, gap]))
        return -(first + 2 * second * soon)
