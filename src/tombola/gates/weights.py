"""Gated weights of a model, written in place so that a pass costs no more than a plain one."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tombola.masks import Group, Part, Units
from tombola.masks.layout import loaded_parameters_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class GatedWeights:
    """Keeps a copy of a model's weights W and writes W ⊙ m into the model.

    Meanwhile only gated tensors receive gradients; embeddings, norms, the head and everything outside the units are
    frozen and cost nothing. No autograd graph runs through the gates: one multiplication with W turns the gradient of
    `W ⊙ m` into those of the units, however many passes it was accumulated over.
    """

    def __init__(self, model: "PreTrainedModel", units: Units) -> None:
        names = dict.fromkeys(part.tensor for group in units.groups for part in _parts(group))
        parameters = loaded_parameters_of(model)
        self._live = {name: parameters[name] for name in names}
        self._own = {name: live.detach().clone() for name, live in self._live.items()}
        self._trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._freeze(model)
        for live in self._live.values():
            live.requires_grad_(True)

    def _freeze(self, model: "PreTrainedModel") -> None:
        model.requires_grad_(False)

    def begin(self) -> None:
        """Prepare for writing the next sample."""

    @torch.no_grad()
    def write(self, group: Group, factors: Tensor) -> None:
        """Write a group's weights, each times its unit's factor, into the model."""
        for part in _parts(group):
            own = part.region(self._own[part.tensor], group.count)
            live = part.region(self._live[part.tensor].data, group.count)
            torch.mul(own, part.spread(factors, own.dim()), out=live)

    @torch.no_grad()
    def gradient(self, group: Group, factors: Tensor) -> Tensor:
        """Return the gradient of each unit's factor, Σ over the unit of dL/d(W ⊙ m) ⊙ W; overwrites the model's."""
        pieces = []
        for part in _parts(group):
            gradient = self._live[part.tensor].grad
            if gradient is not None:
                product = self._product(part, group.count, gradient, factors)
                pieces.append(_over_units(part, group, product))
        if not pieces:
            return torch.zeros(group.shape, device=self._live[group.parts[0].tensor].device)
        return pieces[0].contiguous() if len(pieces) == 1 else torch.stack(pieces).sum(dim=0)

    def _product(self, part: Part, count: int, gradient: Tensor, factors: Tensor) -> Tensor:
        """Return dL/d(W ⊙ m) ⊙ W over the region of a part, in the gradient's own memory."""
        return part.region(gradient, count).mul_(part.region(self._own[part.tensor], count))

    @property
    def touched(self) -> bool:
        """Whether gradients have arrived since they were last cleared."""
        return any(live.grad is not None for live in self._live.values())

    def clear(self) -> None:
        """Discard the used gradients."""
        for live in self._live.values():
            live.grad = None

    def rest(self) -> None:
        """Prepare for the optimizer step, which does not touch these weights."""

    @property
    def gathered(self) -> list[Tensor]:
        """Weight gradients kept for the optimizer step: none."""
        return []

    @torch.no_grad()
    def release(self) -> None:
        """Restore the model's weights bit for bit, and unfreeze everything that was trainable before."""
        for name, live in self._live.items():
            live.copy_(self._own[name])
            live.grad = None
            live.requires_grad_(False)
        for parameter in self._trained:
            parameter.requires_grad_(True)


class TrainedWeights(GatedWeights):
    """Gated weights that are trained together with their gates.

    Nothing is frozen. One multiplication with m turns the gradient of `W ⊙ m` into that of W, which accumulates over
    further samples. Between two steps the model holds W itself with that gradient, so that the optimizer and
    checkpoints work as in any training.
    """

    def __init__(self, model: "PreTrainedModel", units: Units) -> None:
        super().__init__(model, units)
        self._kept: dict[str, Tensor] = {}
        self._resting = True

    def _freeze(self, model: "PreTrainedModel") -> None:
        """Freeze nothing."""

    @torch.no_grad()
    def begin(self) -> None:
        """Copy the weights as the optimizer or a checkpoint left them."""
        if self._resting:
            for name, live in self._live.items():
                self._own[name].copy_(live)
        self._resting = False

    def _product(self, part: Part, count: int, gradient: Tensor, factors: Tensor) -> Tensor:
        """Return dL/d(W ⊙ m) ⊙ W over the region of a part, and turn its gradient into dL/d(W ⊙ m) ⊙ m."""
        region = part.region(gradient, count)
        product = region * part.region(self._own[part.tensor], count)
        region.mul_(part.spread(factors, region.dim()))
        return product

    def clear(self) -> None:
        """Move the gradients aside for the optimizer step."""
        for name, live in self._live.items():
            if live.grad is not None:
                self._kept[name] = self._kept[name].add_(live.grad) if name in self._kept else live.grad
                live.grad = None

    @torch.no_grad()
    def rest(self) -> None:
        """Write W and its gradients into the model for the optimizer step."""
        for name, live in self._live.items():
            live.copy_(self._own[name])
            live.grad = self._kept.pop(name, None)
        self._resting = True

    @property
    def gathered(self) -> list[Tensor]:
        """The gradients kept for the optimizer step, in parameter order."""
        return [self._kept[name] for name in self._live if name in self._kept]

    def release(self) -> None:
        """Release the model with the trained weights."""
        self._kept.clear()
        self.begin()
        super().release()


def _parts(group: Group) -> tuple[Part, ...]:
    return (*group.parts, *group.biases)


def _over_units(part: Part, group: Group, product: Tensor) -> Tensor:
    """Sum a region over each unit; if every element is a unit, return the region itself."""
    if part.dim is None:
        return product if product.shape == group.shape else product.sum().reshape(1)
    others = [dim for dim in range(product.dim()) if dim != part.dim]
    along = product.sum(dim=others) if others else product
    return along.reshape(group.count, part.width).sum(dim=1)
