"""Clipping gradients by their norm: of all of them together, or of each tensor by itself."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

SLACK = 1e-6
"""What torch adds to the norm before it divides by it."""


@torch.no_grad()
def clip(parameters: Iterable[nn.Parameter], longest: float) -> Tensor:
    """Scale gradients down to a norm as `clip_grad_norm_` does, to the bit; returns the norm that they had.

    Gradients that are short enough are left alone, where torch multiplies them by one. That spares a pass over all
    of them, at the price of waiting for the norm.
    """
    clipped = [parameter for parameter in parameters if parameter.grad is not None]
    norm = get_total_norm([parameter.grad for parameter in clipped if parameter.grad is not None])
    if norm + SLACK > longest:
        clip_grads_with_norm_(clipped, longest, norm)
    return norm


@torch.no_grad()
def clip_each(parameters: Iterable[nn.Parameter], longest: float) -> Tensor:
    """Scale every gradient down by itself, as `clip_grad_norm_` of one tensor does; returns the norm of all before.

    A tensor with small gradients then keeps its own, however large those of the others are.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    norms = torch._foreach_norm(gradients)
    factors = [torch.clamp(longest / (norm + SLACK), max=1.0) for norm in norms]
    torch._foreach_mul_(gradients, factors)
    total: Tensor = torch.linalg.vector_norm(torch.stack(list(norms)))
    return total
