"""The optimizers available to recipes, both with decoupled weight decay."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adamax, AdamW, Optimizer

from tombola.training.settings import TrainSettings


class AdamaxW(Adamax):
    """Adamax with decoupled weight decay, as in Super Tickets.

    torch's Adamax adds the decay to the gradient, where the infinity norm cancels it or lets it dominate. Without
    `bias_correction` the step is lr·m/u, as in Super Tickets' release: the first moment starts at zero, so the first
    steps are up to ten times shorter (β₁ = 0.9), an implicit warm-up.
    """

    def __init__(self, params: Any, *, bias_correction: bool = True, **options: Any) -> None:
        super().__init__(params, **options)
        self.bias_correction = bias_correction

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Decay the weights, then take a plain Adamax step."""
        decays = [group["weight_decay"] for group in self.param_groups]
        for group, decay in zip(self.param_groups, decays, strict=True):
            trained = [parameter for parameter in group["params"] if parameter.grad is not None]
            if decay and trained:
                torch._foreach_mul_(trained, 1 - float(group["lr"]) * decay)
            group["weight_decay"] = 0.0
        loss = super().step(closure) if self.bias_correction else self._uncorrected(closure)
        for group, decay in zip(self.param_groups, decays, strict=True):
            group["weight_decay"] = decay
        return loss

    def _uncorrected(self, closure: Callable[[], float] | None) -> float | None:
        """m ← β₁m + (1−β₁)g, u ← max(β₂u, |g| + ε), w ← w − lr·m/u."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lists: tuple[list[Tensor], ...] = ([], [], [], [], [])
            self._init_group(group, *lists)  # type: ignore[no-untyped-call]  # torch has no types for it
            weights, gradients, means, largest, steps = lists
            if not weights:
                continue
            beta1, beta2 = group["betas"]
            torch._foreach_add_(steps, 1)
            torch._foreach_lerp_(means, gradients, 1 - beta1)
            torch._foreach_mul_(largest, beta2)
            sizes = torch._foreach_abs(gradients)
            torch._foreach_add_(sizes, group["eps"])
            torch._foreach_maximum_(largest, sizes)
            torch._foreach_addcdiv_(weights, means, largest, -float(group["lr"]))
        return loss


def optimizer_of(settings: TrainSettings) -> tuple[type[Optimizer], dict[str, Any]]:
    """Return the optimizer's class and arguments, in the fastest implementation for every device."""
    shared = {"lr": settings.learning_rate, "betas": settings.betas, "eps": settings.epsilon}
    if settings.optimizer == "adamw":
        return AdamW, {**shared, "fused": True}
    return AdamaxW, {**shared, "foreach": True, "bias_correction": settings.bias_correction}
