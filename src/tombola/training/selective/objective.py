"""The risk used by First: the sensitivity of the weights to another dropout mask. (ROSE, §3.1)"""

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
    """Chooses by ‖∂KL/∂W‖, with the symmetric KL between the predictions of two dropout passes.

    Gradients are computed for candidates only and summed over the batches of a step on all processes, so that each
    process chooses the same. The KL is summed over items, not averaged: only the order of the norms matters, and sums
    over batches of any size add up. If a step is one batch of one process (not `summed`, and no others), a gradient
    is freed before the loss is differentiated, and costs no memory beside the loss gradient.
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
        """Compute the gradient of the divergence between the halves of a doubled batch's logits, if wanted.

        `labels` are those of one half. A `scaler` that keeps 16-bit gradients from vanishing scales these too.
        """
        if not self.wanted:
            return
        if self.candidates.weights[0].grad is None:  # a new step begins, after a taken or skipped one
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
        """Return the choice by everything measured since `clear`: True where a candidate may update."""
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
        """Discard the measurements."""
        self._chosen = self._gradients = None

    @torch.no_grad()
    def _choose(self, gradients: tuple[Tensor, ...]) -> list[Tensor]:
        single = self.selection.elementwise
        risks = (gradient.abs() for gradient in gradients) if single else self.candidates.norms(gradients)
        return list(self.candidates.within(risks, self.selection))


def _several_processes() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


class TwoDraws(Objective):
    """Any objective on a doubled batch whose halves differ in dropout; the loss is the mean of both.

    The divergence of the halves is measured, never minimised. If the objective makes several passes (FreeLB, PGD),
    the first counts, and each half starts at a different perturbation. An objective that already makes two passes per
    batch (R-Drop) is not doubled again.
    """

    def __init__(self, inner: Objective, risk: DropoutRisk, double: bool = True) -> None:
        self.inner = inner
        self.risk = risk
        self.double = double

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean loss over the items of both halves."""
        return self.inner.loss(model, doubled(batch) if self.double else batch)

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Run the objective's step, and measure the divergence of its first pass."""

        def measure(module: nn.Module, arguments: Any, output: Any) -> None:
            handle.remove()
            self.risk.measure(logits_of(output), batch["labels"])

        handle = model.register_forward_hook(measure)
        try:
            return self.inner.step(model, doubled(batch) if self.double else batch, backward)
        finally:
            handle.remove()

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)


def doubled(batch: Batch) -> dict[str, Tensor]:
    """Return the batch concatenated with itself."""
    return {name: torch.cat([values, values]) for name, values in batch.items()}
