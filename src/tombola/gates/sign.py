"""Sign gates: open where the score is positive, with a clipped straight-through gradient. (Courbariaux et al. 2016)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.gates.base import Gate, gates
from tombola.gates.threshold import Threshold

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_module("torch")


@gates.register
class Sign(Gate):
    """The gate (1 + sign a)/2, whose derivative with respect to a is taken to be 1 where |a| < 1.

    As in SRNets' release, a score is clamped to [−1, 1] after each step and receives no loss gradient at either end.
    A score of exactly 0 is shut; the release makes it half open.
    """

    noisy: ClassVar[bool] = False
    bound: ClassVar[float | None] = 1.0

    published: ClassVar[dict[str, Any]] = Threshold.published

    kind: Literal["sign"] = "sign"
    initial: float = Field(
        0.01,
        gt=0,
        le=1,
        description="distance of the initial scores from 0; their signs depend on the magnitudes",
    )

    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """Return negative scores for units that start shut, positive ones for the rest."""
        return torch.where(removed, -self.initial, self.initial), 0.0

    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """Write 1 for positive scores, else 0."""
        return torch.gt(margin, 0, out=out)

    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """Pass the gradient straight through where |a| < 1, and nothing elsewhere."""
        return gradient.mul_(self.openness_slope(margin))

    def openness(self, margin: Tensor) -> Tensor:
        """1 for positive scores, else 0."""
        return margin.gt(0).to(margin.dtype)

    def openness_slope(self, margin: Tensor) -> Tensor:
        """1 where |a| < 1, else 0."""
        return margin.abs().lt(1).to(margin.dtype)
