"""Bernoulli gates: open with the probability that the score gives, straight-through. (Zhao et al. 2020; SRNets)"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.gates.base import Gate, gates
from tombola.gates.hard_concrete import HardConcrete

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_module("torch")


@gates.register
class Bernoulli(Gate):
    """The gate 1[u < σ(a)], whose derivative with respect to a is taken to be 1.

    So dL/da = dL/d(W ⊙ m) ⊙ W, as for the other gates in SRNets' release: the sigmoid is skipped.
    """

    straight: ClassVar[bool] = True

    published: ClassVar[dict[str, Any]] = HardConcrete.published

    kind: Literal["bernoulli"] = "bernoulli"
    initial: float = Field(0.9, gt=0, lt=1, description="initial probability that a gate is open")

    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """Return the score of the initial probability for every unit, whatever its weights."""
        return torch.full_like(magnitudes, math.log(self.initial / (1 - self.initial))), 0.0

    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """Sample 1 with probability σ(a), else 0."""
        return torch.bernoulli(torch.sigmoid(margin), generator=generator, out=out)

    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """Pass the gradient straight through."""
        return gradient

    def openness(self, margin: Tensor) -> Tensor:
        """σ(a)."""
        return torch.sigmoid(margin)

    def openness_slope(self, margin: Tensor) -> Tensor:
        """σ(a)(1 − σ(a))."""
        open_ = torch.sigmoid(margin)
        return open_.mul_(1 - open_)
