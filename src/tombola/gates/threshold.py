"""Threshold gates: open where the score is above the cut, with a straight-through gradient. (SRNets, §3.2)"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.gates.base import Gate, gates

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_module("torch")

KEPT, CUT = 0.02, 0.01
"""The initial score of open gates under hard initialisation, and the cut between them and the shut gates at 0."""


@gates.register
class Threshold(Gate):
    """The gate 1[score > φ], whose derivative is taken to be 1."""

    published: ClassVar[dict[str, Any]] = {
        "epochs": 5.0,
        "learning_rate": 5e-5,
        "weight_decay": 0.0,
        "warmup": 0.0,
    }

    straight: ClassVar[bool] = True
    usual_budget: ClassVar[str] = "exact"
    noisy: ClassVar[bool] = False

    kind: Literal["threshold"] = "threshold"
    initial: Literal["hard", "soft", "random"] = Field(
        "hard",
        description="initial scores: two values by magnitude (hard) or at random (random), or the magnitudes (soft)",
    )

    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """Return 0 for shut units and 0.02 for the rest, cut at 0.01; or the magnitudes, cut at the k-th smallest.

        Open units that tie with the k-th smallest magnitude start just above it.
        """
        if self.initial == "soft":
            highest = magnitudes[removed].max() if removed.any() else magnitudes.new_zeros(())
            above = highest.nextafter(highest.new_tensor(torch.inf))
            return torch.where(removed, magnitudes, magnitudes.maximum(above)), highest.item()
        if self.initial == "random":
            order = torch.randperm(removed.numel(), generator=generator)
            removed = removed.flatten()[order].view_as(removed)
        return torch.where(removed, 0.0, KEPT), CUT

    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """Write 1 above the cut, else 0."""
        return torch.gt(margin, 0, out=out)

    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """Pass the gradient straight through."""
        return gradient

    def openness(self, margin: Tensor) -> Tensor:
        """1 above the cut, else 0."""
        return margin.gt(0).to(margin.dtype)

    def openness_slope(self, margin: Tensor) -> Tensor:
        """1, as for the straight-through gradient."""
        return torch.ones_like(margin)
