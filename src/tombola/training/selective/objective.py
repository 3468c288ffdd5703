"""The risk used by First: the sensitivity of the weights to another dropout mask. (ROSE, §3.1)"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, distributed, nn
from torch.amp import GradScaler

from tombola.errors import TombolaError
from tombola.objectives import Batch, LogitLoss, Objective, inputs_of, items_of, logits_of
from tombola.objectives.passes import disagreement
from tombola.training.selective.masks import Candidates
from tombola.training.selective.settings import Selection
from tombola.training.selective.shared_backward import SharedBackward


class DropoutRisk:
    """Chooses by ‖∂KL/∂W‖, with the symmetric KL between the predictions of two dropout passes.

    Gradients are computed for candidates only and summed over the batches of a step on all processes, so that each
    process chooses the same. The KL is summed over items, not averaged: only the order of the norms matters, and sums
    over batches of any size add up. If a step is one batch of one process (not `summed`, and no others), only the norm
    of a gradient is kept, so gradients cost no memory beside those of the loss.
    """

    def __init__(self, candidates: Candidates, selection: Selection, summed: bool) -> None:
        self.candidates = candidates
        self.selection = selection
        self.summed = summed
        self.wanted = True
        self.scaler: GradScaler | None = None
        self._chosen: list[Tensor] | None = None
        self._gradients: list[Tensor] | None = None

    def measure(self, logits: Tensor, labels: Tensor) -> None:
        """Compute the gradient of the divergence between the halves of a doubled batch's logits, if wanted.

        `labels` are those of one half. A `scaler` that keeps 16-bit gradients from vanishing scales these too.
        """
        if not self.wanted:
            return
        self.begin()
        gradients = torch.autograd.grad(
            self.divergence(logits, labels),
            self.candidates.weights,
            retain_graph=True,
            materialize_grads=True,
        )
        self.add([self.reduced(index, gradient) for index, gradient in enumerate(gradients)])

    def begin(self) -> None:
        """Discard earlier batches if the next backward pass begins a new step, after a taken or a skipped one."""
        if self.candidates.weights[0].grad is None:
            self.clear()

    def divergence(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the divergence between the halves of a doubled batch's logits, summed over items."""
        first, second = logits.chunk(2)
        scale = 1.0 if self.scaler is None else self.scaler.get_scale()
        return scale * items_of(labels) * disagreement(first, second, labels)

    def reduced(self, index: int, gradient: Tensor) -> Tensor:
        """Return what `add` needs of the divergence's gradient with respect to a candidate."""
        return gradient if self._adds_up else self._risk(index, gradient)

    def add(self, reduced: list[Tensor]) -> None:
        """Add a batch: what `reduced` returned for each candidate."""
        if not self._adds_up:
            self._chosen = list(self.candidates.within(reduced, self.selection))
        elif self._gradients is None:
            self._gradients = reduced
        else:
            torch._foreach_add_(self._gradients, reduced)

    def take(self) -> list[Tensor]:
        """Return the choice by everything measured since `clear`: True where a candidate may update."""
        if self._gradients is not None:
            if _several_processes():
                for gradient in self._gradients:
                    distributed.all_reduce(gradient)
            risks = map(self._risk, range(len(self._gradients)), self._gradients)
            self._chosen, self._gradients = list(self.candidates.within(risks, self.selection)), None
        if self._chosen is None:
            raise TombolaError(
                f"the selection {self.selection.kind!r} needs two passes of each batch before a step: train "
                "with tombola's train or RoseTrainer, or call DropoutRisk.measure in your own loop"
            )
        return self._chosen

    def clear(self) -> None:
        """Discard the measurements."""
        self._chosen = self._gradients = None

    @property
    def _adds_up(self) -> bool:
        """Whether the gradients of several batches add up to a step."""
        return self.summed or _several_processes()

    def _risk(self, index: int, gradient: Tensor) -> Tensor:
        return gradient.abs() if self.selection.elementwise else self.candidates.norm(index, gradient)


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
        larger = doubled(batch) if self.double else batch
        kind = type(self.inner)
        if self.risk.wanted and kind.loss is LogitLoss.loss and kind.step is LogitLoss.step:
            return self._one_pass(cast(LogitLoss, self.inner), model, larger, batch["labels"], backward)

        def measure(module: nn.Module, arguments: Any, output: Any) -> None:
            handle.remove()
            self.risk.measure(logits_of(output), batch["labels"])

        handle = model.register_forward_hook(measure)
        try:
            return self.inner.step(model, larger, backward)
        finally:
            handle.remove()

    def _one_pass(
        self,
        inner: LogitLoss,
        model: nn.Module,
        larger: Batch,
        labels: Tensor,
        backward: Callable[[Tensor], None],
    ) -> Tensor:
        """Run the step of a loss of the logits, with one backward pass if it determines both gradients."""
        risk = self.risk
        risk.begin()
        shared = SharedBackward(risk.candidates.model, risk.candidates.weights, risk.reduced)
        with shared.watching():
            logits = logits_of(model(**inputs_of(larger)))
        follows = shared.follow(
            logits,
            lambda values: inner.of_logits(values, larger),
            lambda values: risk.divergence(values, labels),
        )
        if not follows:
            risk.measure(logits, labels)
        loss = inner.of_logits(logits, larger)
        backward(loss)
        if follows:
            risk.add(shared.reduced())
        return loss.detach()

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)


def doubled(batch: Batch) -> dict[str, Tensor]:
    """Return the batch concatenated with itself."""
    return {name: torch.cat([values, values]) for name, values in batch.items()}
