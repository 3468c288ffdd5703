"""FreeLB: training on every step of an ascent in the word embeddings. (Zhu et al. 2020; Robust Tickets, §3.2)"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.adversarial import Adversarial
from tombola.objectives.perturbation import perturbed
from tombola.objectives.settings import Ascent, adversary

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = lazy_module("torch")


class FreeLBAdversary(Ascent):
    """Settings of FreeLB, which trains on every step of the ascent."""

    kind: Literal["freelb"] = "freelb"

    @property
    def passes(self) -> int:
        """One at each point of the ascent."""
        return self.steps


@adversary(FreeLBAdversary)
class FreeLB(Adversarial):
    """FreeLB: the mean loss over the K points of an ascent, one backward pass each.

    That pass computes the gradients of both weights and perturbation; at the last point only those of the weights.
    With K = 1 this is the inner loss at the random start.
    """

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean over the K points, keeping all their graphs."""
        losses: list[Tensor] = []
        with perturbed(model, batch, self.adversary) as delta:
            for left in reversed(range(self.adversary.steps)):
                delta.track(left > 0)
                losses.append(self.inner.loss(model, batch))
                if left:
                    delta.ascend(*torch.autograd.grad(losses[-1], delta.values, retain_graph=True))
        return torch.stack(losses).mean()

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Keep one graph at a time by calling `backward(loss / K)` after each point."""
        points = self.adversary.steps
        losses: list[Tensor] = []
        with perturbed(model, batch, self.adversary) as delta:
            for left in reversed(range(points)):
                delta.track(left > 0)
                losses.append(self.inner.step(model, batch, lambda part: backward(part / points)))
                if left:
                    delta.ascend(delta.gradient)
        return torch.stack(losses).mean()
