"""Training on adversarial word embeddings: FreeLB and PGD, around any objective. (Robust Tickets, §3.2)"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tombola.objectives import Batch, Objective, objectives
from tombola.objectives.perturbation import perturbed
from tombola.objectives.settings import Adversary


@dataclass(frozen=True)
class Adversarial(Objective):
    """What both share: the objective whose loss the adversary raises, and how the adversary goes about it."""

    inner: Objective
    adversary: Adversary

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)


@objectives("freelb")
class FreeLB(Adversarial):
    """FreeLB: the mean loss over the K points of an ascent, one backward pass each. (Zhu et al. 2020)

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


@objectives("pgd")
class PGD(Adversarial):
    """PGD: the loss at the end of K steps of ascent, which compute no weight gradients. (Madry et al. 2018)"""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The inner loss at the end of the ascent."""
        with self._at_the_top(model, batch):
            return self.inner.loss(model, batch)

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """The inner objective's step there."""
        with self._at_the_top(model, batch):
            return self.inner.step(model, batch, backward)

    @contextmanager
    def _at_the_top(self, model: nn.Module, batch: Batch) -> Iterator[None]:
        with perturbed(model, batch, self.adversary) as delta:
            for _ in range(self.adversary.steps):
                delta.track(True)
                delta.ascend(*torch.autograd.grad(self.inner.loss(model, batch), delta.values))
            yield
