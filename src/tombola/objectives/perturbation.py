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
    """δ of shape (examples, tokens, embedding size) in 32 bits, and 0 wherever there is padding.

    It starts at U(−1, 1)·initial, in the l2 norm divided by √(tokens·size), where an example's tokens are counted
    without padding.
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
        """Whether passes from now on shall lead to a gradient of δ."""
        self.values = self.values.detach().requires_grad_(gradient)

    @property
    def gradient(self) -> Tensor:
        """What backward passes have left at δ."""
        assert self.values.grad is not None
        return self.values.grad

    def ascend(self, gradient: Tensor) -> None:
        """One step δ ← δ + η·g/‖g‖ with the l2 or the linf norm over an example, and back into the ball.

        PGD in linf goes by signs, δ + η·sign g, as Madry et al. have it; FreeLB does not. An example whose 16-bit
        gradient has overflowed stays where it is.
        """
        direction = self.real * gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        # to a largest entry of 1, in both norms: squares of an overfitted model's gradients would underflow
        direction = direction / direction.abs().amax(dim=(1, 2), keepdim=True).clamp_min(_tiny())
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
        """The forward hook. A batch that holds every example several times takes the same δ for each."""
        copies = len(output) // len(self.values)
        return output + self.values.repeat(copies, 1, 1).to(output.dtype)


@contextmanager
def perturbed(model: nn.Module, batch: Batch, adversary: Ascent) -> Iterator[Perturbation]:
    """Inside, δ is added to what the model's word embedding gives.

    All else, such as positions and token types, goes in as ever; Robust Tickets' published code drops the latter.
    """
    from accelerate.utils import extract_model_from_parallel  # takes long to load, and recipes never need it

    embedding = extract_model_from_parallel(model).get_input_embeddings()
    perturbation = Perturbation(embedding, batch, adversary)
    hook = embedding.register_forward_hook(perturbation.add)
    try:
        yield perturbation
    finally:
        hook.remove()


def _tiny() -> float:
    """The smallest positive normal number in 32 bits."""
    return torch.finfo(torch.float32).tiny


def _length(values: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(values, dim=(1, 2), keepdim=True)
    return lengths
