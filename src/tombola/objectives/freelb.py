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


@adversary(FreeLBAdversary)
class FreeLB(Adversarial):
    """FreeLB: the mean loss over the K points of an ascent, one backward pass each.

    That pass gives the weights' gradient and the perturbation's at once; at the last point only the weights'.
    With K = 1 this is the inner loss at the random start.
    """

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean over the K points, with the graphs of all of them."""
        losses: list[Tensor] = []
        with perturbed(model, batch, self.adversary) as delta:
            for left in reversed(range(self.adversary.steps)):
                delta.track(left > 0)
                losses.append(self.inner.loss(model, batch))
                if left:
                    delta.ascend(*torch.autograd.grad(losses[-1], delta.values, retain_graph=True))
        return torch.stack(losses).mean()

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """The same, with the graph of one point at a time: `backward(loss / K)` after each."""
        points = self.adversary.steps
        losses: list[Tensor] = []
        with perturbed(model, batch, self.adversary) as delta:
            for left in reversed(range(points)):
                delta.track(left > 0)
                losses.append(self.inner.step(model, batch, lambda part: backward(part / points)))
                if left:
                    delta.ascend(delta.gradient)
        return torch.stack(losses).mean()
