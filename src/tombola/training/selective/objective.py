"""The risk that First selects by: how much the weights answer to another draw of dropout. (ROSE, §3.1)"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.amp import GradScaler

from tombola.errors import TombolaError
from tombola.objectives import Batch, Objective, logits_of
from tombola.objectives.passes import disagreement
from tombola.training.selective.masks import Candidates
from tombola.training.selective.settings import Selection


class DropoutRisk:
    """Chooses by ‖∂KL/∂W‖, where KL is the symmetric one between the predictions under two draws of dropout.

    Gradients are taken for candidates alone and add up over the batches of a step on all processes, so that
    each process chooses the same. The KL is summed over items, not averaged: only the order of the norms
    counts, and sums of batches of any size make the whole. Where a step is one batch of one process (not `summed`,
    and no others), a gradient is gone before the loss is differentiated, and costs no memory beside its gradient.
    """

    def __init__(self, candidates: Candidates, selection: Selection, summed: bool) -> None:
        self.candidates = candidates
        self.selection = selection
        self.summed = summed
        self.wanted = True
        self.scaler: GradScaler | None = None
        self._chosen: list[Tensor] | None = None
        self._gradients: tuple[Tensor, ...] | None = None

    def measure(self, logits: Tensor, labels: Tensor) -> None:
        """Take the gradient of the divergence between the halves of a doubled batch's logits, if one is wanted.

        `labels` are those of one half. Where a `scaler` keeps 16-bit gradients from vanishing, it scales these too.
        """
        if not self.wanted:
            return
        if self.candidates.weights[0].grad is None:  # a new step begins, be the last one taken or skipped
            self.clear()
        first, second = logits.chunk(2)
        scale = 1.0 if self.scaler is None else self.scaler.get_scale()
        divergence = scale * labels.ne(-100).sum() * disagreement(first, second, labels)
        gradients = torch.autograd.grad(
            divergence, self.candidates.weights, retain_graph=True, materialize_grads=True
        )
        if not (self.summed or _several_processes()):
            self._chosen = self._choose(gradients)
        elif self._gradients is None:
            self._gradients = gradients
        else:
            torch._foreach_add_(self._gradients, gradients)

    def take(self) -> list[Tensor]:
        """The choice by all that was measured since `clear`: for each candidate True where it may update."""
        if self._gradients is not None:
            if _several_processes():
                for gradient in self._gradients:
                    distributed.all_reduce(gradient)
            self._chosen, self._gradients = self._choose(self._gradients), None
        if self._chosen is None:
            raise TombolaError(
                f"the selection {self.selection.kind!r} needs two passes of each batch before a step: train "
                "with tombola's train or RoseTrainer, or call DropoutRisk.measure in your own loop"
            )
        return self._chosen

    def clear(self) -> None:
        """Forget what was measured."""
        self._chosen = self._gradients = None

    @torch.no_grad()
    def _choose(self, gradients: tuple[Tensor, ...]) -> list[Tensor]:
        single = self.selection.elementwise
        risks = (gradient.abs() for gradient in gradients) if single else self.candidates.norms(gradients)
        return list(self.candidates.within(risks, self.selection))


def _several_processes() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class TwoDraws(Objective):
    """Any objective on a doubled batch, whose halves differ in dropout: the mean of the two losses.

    The divergence of the halves is only measured, and never minimised. Where the objective makes several
    passes (FreeLB, PGD) that of the first counts; there each half starts at a perturbation of its own. An
    objective that makes two passes of each batch by itself (R-Drop) is not doubled again.
    """

    def __init__(self, inner: Objective, risk: DropoutRisk, double: bool = True) -> None:
        self.inner = inner
        self.risk = risk
        self.double = double

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The mean loss over the items of both halves."""
        return self.inner.loss(model, twice(batch) if self.double else batch)

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Let the objective take its gradient, and measure the divergence of its first pass."""

        def measure(module: nn.Module, arguments: Any, output: Any) -> None:
            handle.remove()
            self.risk.measure(logits_of(output), batch["labels"])

        handle = model.register_forward_hook(measure)
        try:
            return self.inner.step(model, twice(batch) if self.double else batch, backward)
        finally:
            handle.remove()

    def at(self, share: float) -> None:
        """Pass it on."""
        self.inner.at(share)


def twice(batch: Batch) -> dict[str, Tensor]:
    """The batch with every example a second time, below the first."""
    return {name: torch.cat([values, values]) for name, values in batch.items()}
