"""Gradient clipping by the global norm, or by the norm of each tensor."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

SLACK = 1e-6
"""The constant torch adds to the norm before dividing by it."""


@torch.no_grad()
def clip(parameters: Iterable[nn.Parameter], longest: float) -> Tensor:
    """Clip gradients exactly as `clip_grad_norm_` does, and return their norm before clipping.

    Gradients within the limit are left alone, while torch multiplies them by one. This saves a pass over all of them,
    at the price of waiting for the norm.
    """
    clipped = [parameter for parameter in parameters if parameter.grad is not None]
    norm = get_total_norm([parameter.grad for parameter in clipped if parameter.grad is not None])
    if norm + SLACK > longest:
        clip_grads_with_norm_(clipped, longest, norm)
    return norm


@torch.no_grad()
def clip_each(parameters: Iterable[nn.Parameter], longest: float) -> Tensor:
    """Clip each gradient separately, and return the global norm before clipping.

    A tensor with small gradients then keeps them, however large the gradients of others are.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    norms = torch._foreach_norm(gradients)
    factors = [torch.clamp(longest / (norm + SLACK), max=1.0) for norm in norms]
    torch._foreach_mul_(gradients, factors)
    total: Tensor = torch.linalg.vector_norm(torch.stack(list(norms)))
    return total
