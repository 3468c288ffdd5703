"""PGD: training on the end of an ascent in the word embeddings. (Madry et al. 2018; Robust Tickets, §3.2)"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Literal

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


class PGDAdversary(Ascent):
    """Settings of PGD, which trains only on the end of the ascent."""

    signed: ClassVar[bool] = True

    kind: Literal["pgd"] = "pgd"

    @property
    def passes(self) -> int:
        """One for each step of the ascent, and one at its end."""
        return self.steps + 1


@adversary(PGDAdversary)
class PGD(Adversarial):
    """PGD: the loss after K ascent steps, which compute no weight gradients."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the inner loss at the end of the ascent."""
        with self._at_maximum(model, batch):
            return self.inner.loss(model, batch)

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Run the inner objective's step at the end of the ascent."""
        with self._at_maximum(model, batch):
            return self.inner.step(model, batch, backward)

    @contextmanager
    def _at_maximum(self, model: nn.Module, batch: Batch) -> Iterator[None]:
        with perturbed(model, batch, self.adversary) as delta:
            for _ in range(self.adversary.steps):
                delta.track(True)
                delta.ascend(*torch.autograd.grad(self.inner.loss(model, batch), delta.values))
            yield
