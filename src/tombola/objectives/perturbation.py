"""A perturbation δ of a batch's word embeddings, and its ascent along a gradient. (Robust Tickets, §3.2)"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.settings import Ascent

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = lazy_module("torch")


class Perturbation:
    """δ of shape (examples, tokens, embedding size) in 32 bits, and 0 at padding.

    It starts at U(−1, 1)·initial, divided by √(tokens·size) in the l2 norm, where tokens excludes padding.
    """

    def __init__(self, embedding: nn.Embedding, batch: Batch, adversary: Ascent) -> None:
        ids = batch["input_ids"]
        self.adversary = adversary
        self.real = batch.get("attention_mask", torch.ones_like(ids)).float()[..., None]
        noise = torch.empty(*ids.shape, embedding.embedding_dim, device=ids.device).uniform_(-1, 1)
        self.values = self.real * noise * adversary.initial
        if adversary.norm == "l2":
            numbers = self.real.sum(dim=1, keepdim=True) * embedding.embedding_dim
            self.values = self.values / numbers.sqrt()

    def track(self, gradient: bool) -> None:
        """Set whether further passes compute a gradient of δ."""
        self.values = self.values.detach().requires_grad_(gradient)

    @property
    def gradient(self) -> Tensor:
        """The accumulated gradient of δ."""
        assert self.values.grad is not None
        return self.values.grad

    def ascend(self, gradient: Tensor) -> None:
        """Take one step δ ← δ + η·g/‖g‖ with the l2 or the linf norm over an example, and project into the ball.

        PGD in linf uses signs, δ + η·sign g, as in Madry et al.; FreeLB does not. An example whose 16-bit gradient
        has overflowed does not move.
        """
        direction = self.real * gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        # scale the largest entry to 1 for both norms: squares of an overfitted model's gradients would underflow
        tiny = torch.finfo(torch.float32).tiny
        direction = direction / direction.abs().amax(dim=(1, 2), keepdim=True).clamp_min(tiny)
        if self.adversary.norm == "linf":
            direction = direction.sign() if self.adversary.signed else direction
        else:
            direction = direction / _length(direction).clamp_min(1)
        self.values = self._inside(self.values.detach() + self.adversary.step_size * direction)

    def _inside(self, values: Tensor) -> Tensor:
        radius = self.adversary.radius
        if radius is None:
            return values
        if self.adversary.norm == "linf":
            return values.clamp(-radius, radius)
        return values * (radius / _length(values).clamp_min(radius))

    def add(self, embedding: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        """Add δ, as a forward hook. If a batch holds every example several times, all copies get the same δ."""
        copies = len(output) // len(self.values)
        return output + self.values.repeat(copies, 1, 1).to(output.dtype)


@contextmanager
def perturbed(model: nn.Module, batch: Batch, adversary: Ascent) -> Iterator[Perturbation]:
    """Add δ to the model's word embeddings in this context.

    Positions and token types are unchanged; Robust Tickets' published code drops the latter.
    """
    embedding = embedding_of(model)
    perturbation = Perturbation(embedding, batch, adversary)
    hook = embedding.register_forward_hook(perturbation.add)
    try:
        yield perturbation
    finally:
        hook.remove()


def embedding_of(model: nn.Module) -> nn.Embedding:
    """Return the word embeddings of a model, which may be wrapped for several processes."""
    from accelerate.utils import extract_model_from_parallel  # slow to import, and recipes never need it

    embedding: nn.Embedding = extract_model_from_parallel(model).get_input_embeddings()
    return embedding


def _length(values: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return lengths
