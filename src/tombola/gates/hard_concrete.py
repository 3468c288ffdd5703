"""Hard-concrete gates: noisy values in [0, 1], often exactly 0 or 1. (Louizos et al. 2018; Robust Tickets, §3.1)"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.lazy import lazy_module
from tombola.gates.base import Gate, gates

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_module("torch")

EDGE = 1e-4
"""The noise is uniform between EDGE and 1 − EDGE."""


@gates.register
class HardConcrete(Gate):
    """The hard-concrete gate: a stretched, clipped, noisy sigmoid of the score."""

    published: ClassVar[dict[str, Any]] = {
        "epochs": 20.0,
        "learning_rate": 0.1,
        "weight_decay": 1e-6,
        "warmup": 0.1,
    }

    kind: Literal["hard_concrete"] = "hard_concrete"
    initial: float = Field(0.9, gt=0, lt=1, description="initial value of every gate, without noise")
    temperature: float = Field(
        2 / 3, gt=0, description="temperature of the sigmoid; lower values push gates towards 0 or 1"
    )
    stretch: tuple[float, float] = Field(
        (-0.1, 1.1), description="range of the stretched sigmoid, before it is clipped to [0, 1]"
    )

    @model_validator(mode="after")
    def _check_stretch(self) -> Self:
        low, high = self.stretch
        if not low < 0 < 1 < high:
            raise ValueError("stretch: takes a number below 0 and one above 1, e.g. [-0.1, 1.1]")
        return self

    def start(self, magnitudes: Tensor, removed: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
        """Return the score at which the noise-free gate is `initial` (log 5 for 0.9), whatever the weights."""
        low, high = self.stretch
        return torch.full_like(magnitudes, math.log((self.initial - low) / (high - self.initial))), 0.0

    def sample(self, margin: Tensor, out: Tensor, generator: torch.Generator) -> Tensor:
        """Sample clip((ζ − γ)·σ((logit u + a)/β) + γ, 0, 1) with uniform u."""
        low, high = self.stretch
        soft = (
            out.uniform_(EDGE, 1 - EDGE, generator=generator)
            .logit_()
            .add_(margin)
            .div_(self.temperature)
            .sigmoid_()
        )
        return soft.mul_(high - low).add_(low).clamp_(0.0, 1.0)

    def back(self, gradient: Tensor, sampled: Tensor, margin: Tensor) -> Tensor:
        """Multiply by (m − γ)(ζ − m)/((ζ − γ)·β) where m is neither 0 nor 1: the sample determines its derivative."""
        low, high = self.stretch
        slope = (sampled - low).mul_(high - sampled).div_((high - low) * self.temperature)
        return gradient.mul_(slope).masked_fill_((sampled == 0) | (sampled == 1), 0.0)

    def openness(self, margin: Tensor) -> Tensor:
        """σ(a − β·log(−γ/ζ))."""
        low, high = self.stretch
        return torch.sigmoid(margin - self.temperature * math.log(-low / high))

    def expected(self, margin: Tensor) -> Tensor:
        """clip((ζ − γ)·σ(a) + γ, 0, 1)."""
        low, high = self.stretch
        return torch.sigmoid(margin).mul_(high - low).add_(low).clamp_(0.0, 1.0)

    def openness_slope(self, margin: Tensor) -> Tensor:
        """Return the derivative of that sigmoid."""
        open_ = self.openness(margin)
        return open_.mul_(1 - open_)
