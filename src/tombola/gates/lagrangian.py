"""A differentiable sparsity target. (Wang et al. 2020; damped against overshooting as in Stooke et al. 2020)"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tombola.gates.base import Budget, Moment, budgets

AHEAD = 40
"""Steps over which the change of the gap is extrapolated: about as long as Adam's momentum carries the scores on."""


@budgets.register
class Lagrangian(Budget):
    """λ1·g + λ2·g², where g is the expected sparsity minus the target: scores descend on it, λ1 and λ2 ascend.

    Plain ascent overshoots, because scores keep moving while λ1 comes down again. So λ1 ascends on the extrapolated
    gap, in proportion to its own size, and the target rises ever more slowly.
    """

    kind: Literal["lagrangian"] = "lagrangian"
    rate: float = Field(1.0, gt=0, description="step size of the multipliers' ascent")
    warmup: float = Field(
        0.6, ge=0, le=1, description="share of the steps over which the target rises from 0"
    )

    def target_at(self, share: float, target: float) -> float:
        """Return the target sparsity at this point of the search."""
        left = max(0.0, 1.0 - share / self.warmup) if self.warmup else 0.0
        return target * (1.0 - left**2)

    def pressure(self, now: Moment) -> float:
        """Update the multipliers, then return −(λ1 + 2·λ2·g) for the extrapolated gap g."""
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
