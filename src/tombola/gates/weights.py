"""The weights of a model under gates: written in place, so that every pass costs what a plain one does."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tombola.masks import Group, Part, Units
from tombola.masks.layout import loaded_parameters_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class GatedWeights:
    """Holds a model's own weights W aside and puts W ⊙ m in their place.

    While they are held, only gated tensors take gradients; embeddings, norms, the head and all that belongs
    to no unit are frozen and cost nothing. No graph leads through the gates: what reaches `W ⊙ m` is taken
    back to each unit by one multiplication with W, however many passes it was gathered over.
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
        """Get ready for the next sample to be written."""

    @torch.no_grad()
    def write(self, group: Group, factors: Tensor) -> None:
        """Put the weights of a group's units, each times its factor, into the model."""
        for part in _parts(group):
            own = part.region(self._own[part.tensor], group.count)
            live = part.region(self._live[part.tensor].data, group.count)
            torch.mul(own, part.spread(factors, own.dim()), out=live)

    @torch.no_grad()
    def gradient(self, group: Group, factors: Tensor) -> Tensor:
        """The loss's derivative by each unit's factor: Σ over the unit of dL/d(W ⊙ m) ⊙ W. Uses the gradient up."""
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
        """dL/d(W ⊙ m) ⊙ W over the region of a part, in the gradient's own memory."""
        return part.region(gradient, count).mul_(part.region(self._own[part.tensor], count))

    @property
    def touched(self) -> bool:
        """Whether gradients have arrived since they were last cleared."""
        return any(live.grad is not None for live in self._live.values())

    def clear(self) -> None:
        """Forget the gradients that have been used."""
        for live in self._live.values():
            live.grad = None

    def rest(self) -> None:
        """Make ready for the step of the optimizer, which is not about these weights."""

    @property
    def gathered(self) -> list[Tensor]:
        """Gradients of weights that are kept for the step of the optimizer: none."""
        return []

    @torch.no_grad()
    def release(self) -> None:
        """Give the model its own weights back, bit for bit, and let everything train that did before."""
        for name, live in self._live.items():
            live.copy_(self._own[name])
            live.grad = None
            live.requires_grad_(False)
        for parameter in self._trained:
            parameter.requires_grad_(True)


class TrainedWeights(GatedWeights):
    """The same for weights that are trained together with their gates.

    Nothing is frozen. What reaches `W ⊙ m` becomes the gradient of W by one multiplication with m, and is kept while
    further samples follow. Between two steps the model holds W itself with that gradient: the optimizer moves it,
    and checkpoints hold it, as in any training.
    """

    def __init__(self, model: "PreTrainedModel", units: Units) -> None:
        super().__init__(model, units)
        self._kept: dict[str, Tensor] = {}
        self._resting = True

    def _freeze(self, model: "PreTrainedModel") -> None:
        """Everything goes on training."""

    @torch.no_grad()
    def begin(self) -> None:
        """Take over what the optimizer, or a checkpoint, has made of the weights."""
        if self._resting:
            for name, live in self._live.items():
                self._own[name].copy_(live)
        self._resting = False

    def _product(self, part: Part, count: int, gradient: Tensor, factors: Tensor) -> Tensor:
        """dL/d(W ⊙ m) ⊙ W over the region of a part, whose gradient becomes dL/d(W ⊙ m) ⊙ m."""
        region = part.region(gradient, count)
        product = region * part.region(self._own[part.tensor], count)
        region.mul_(part.spread(factors, region.dim()))
        return product

    def clear(self) -> None:
        """Keep the gradients for the step of the optimizer."""
        for name, live in self._live.items():
            if live.grad is not None:
                self._kept[name] = self._kept[name].add_(live.grad) if name in self._kept else live.grad
                live.grad = None

    @torch.no_grad()
    def rest(self) -> None:
        """Put the weights themselves and their gradients into the model, for the step of the optimizer."""
        for name, live in self._live.items():
            live.copy_(self._own[name])
            live.grad = self._kept.pop(name, None)
        self._resting = True

    @property
    def gathered(self) -> list[Tensor]:
        """The gradients that are kept for the step of the optimizer, in the order of the parameters."""
        return [self._kept[name] for name in self._live if name in self._kept]

    def release(self) -> None:
        """Let go of the model with the weights as they were last trained."""
        self._kept.clear()
        self.begin()
        super().release()


def _parts(group: Group) -> tuple[Part, ...]:
    return (*group.parts, *group.biases)


def _over_units(part: Part, group: Group, product: Tensor) -> Tensor:
    """The sum over what each unit covers of a region; where the units are its elements, the region itself."""
    if part.dim is None:
        return product if product.shape == group.shape else product.sum().reshape(1)
    others = [dim for dim in range(product.dim()) if dim != part.dim]
    along = product.sum(dim=others) if others else product
    return along.reshape(group.count, part.width).sum(dim=1)
