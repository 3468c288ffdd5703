"""The optimizers that a recipe can name, both with decoupled weight decay."""

from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Adamax, AdamW, Optimizer

from tombola.training.settings import TrainSettings


class AdamaxW(Adamax):
    """Adamax whose weight decay shrinks the weights directly, as Super Tickets has it.

    torch's own adds the decay to the gradient, where the infinity norm divides it away or lets it dominate.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Decay, then take Adamax's step without decay."""
        decays = [group["weight_decay"] for group in self.param_groups]
        for group, decay in zip(self.param_groups, decays, strict=True):
            trained = [parameter for parameter in group["params"] if parameter.grad is not None]
            if decay and trained:
                torch._foreach_mul_(trained, 1 - float(group["lr"]) * decay)
            group["weight_decay"] = 0.0
        loss = super().step(closure)
        for group, decay in zip(self.param_groups, decays, strict=True):
            group["weight_decay"] = decay
        return loss


def optimizer_of(settings: TrainSettings) -> tuple[type[Optimizer], dict[str, Any]]:
    """The optimizer's class and arguments, in the implementation that is fastest on every device."""
    shared = {"lr": settings.learning_rate, "betas": settings.betas, "eps": settings.epsilon}
    if settings.optimizer == "adamw":
        return AdamW, {**shared, "fused": True}
    return AdamaxW, {**shared, "foreach": True}
