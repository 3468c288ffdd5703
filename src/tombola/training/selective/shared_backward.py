"""The gradients of First's divergence from the backward pass of the loss, for two classes or one number.

There, both functions depend on an example only through one number: the difference of its logits, or its prediction. So
at every activation their gradients differ by one factor per example, and the activations need to be differentiated only
once. (Of the three matrix products of a layer, the one for the divergence with respect to its input is saved.)
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

FLOOR = 1e-19
"""The least gradient of the loss with respect to a logit, so that factors stay finite.

Beside the gradients of other examples it is lost in rounding, and its products with weights are still normal numbers.
"""


class SharedBackward:
    """Computes weight gradients of a second function of the logits during the backward pass of the loss.

    Args:
        model: The model that computes the logits.
        weights: The weights whose gradients are wanted.
        reduce: Maps the index of a weight and its gradient to what is to be kept.
    """

    def __init__(
        self, model: nn.Module, weights: Sequence[nn.Parameter], reduce: Callable[[int, Tensor], Tensor]
    ) -> None:
        self._weights = weights
        self._reduce = reduce
        self._reduced: dict[int, Tensor] = {}
        self._layers = _layers_of(model, weights)
        self._rows: list[int] = []
        self._narrow = False
        """Whether a layer computed in fp16, whose range floor and factors exceed; the logits may be in 32 bits."""
        self._factors: Tensor | None = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Prepare the layers of the weights for a backward pass, during a forward pass."""
        handles = [
            layer.register_forward_hook(partial(self._prepare, index))
            for index, layer in enumerate(self._layers)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def follow(
        self, logits: Tensor, loss: Callable[[Tensor], Tensor], other: Callable[[Tensor], Tensor]
    ) -> bool:
        """Follow the backward pass that will come, if it determines the gradients of `other`, and return whether.

        Args:
            logits: The logits of the watched pass.
            loss: The function of the logits that will be differentiated.
            other: The function of the logits whose gradients are wanted.
        """
        watched = bool(self._layers) and self._rows == [len(logits)] * len(self._layers)
        if not watched or self._narrow or logits.dim() != 2 or logits.shape[1] > 2:
            return False
        leaf = logits.detach().float().requires_grad_()
        gradients = [torch.autograd.grad(function(leaf), leaf)[0] for function in (loss, other)]
        if not all(map(_depends_on_one_number, gradients)):
            return False
        logits.register_hook(partial(self._scale, _along(gradients[1])))
        return True

    def reduced(self) -> list[Tensor]:
        """Return what is kept of each weight's gradient, after the backward pass."""
        return [
            self._reduced[index] if index in self._reduced else self._reduce(index, torch.zeros_like(weight))
            for index, weight in enumerate(self._weights)
        ]

    def _prepare(self, index: int, layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        """Note how many rows the layer sees, and differentiate its weight once its output has been."""
        if output.requires_grad:
            self._rows.append(len(output))
            self._narrow |= output.dtype == torch.float16
            output.register_hook(partial(self._differentiate, index, layer, given[0].detach()))

    def _scale(self, wanted: Tensor, gradient: Tensor) -> Tensor:
        """Set each row's factor from the gradient of the loss with respect to the logits."""
        along = _along(gradient.float())
        along = torch.where(wanted.ne(0) & along.abs().lt(FLOOR), FLOOR, along).to(gradient.dtype)
        self._factors = torch.where(wanted.ne(0), wanted / along.float(), 0.0)
        return torch.stack([along, -along][: gradient.shape[1]], dim=1)

    def _differentiate(self, index: int, layer: nn.Module, given: Tensor, gradient: Tensor) -> None:
        if self._factors is not None:
            factors = self._factors.to(gradient.dtype).view(-1, *[1] * (gradient.dim() - 1))
            self._reduced[index] = self._reduce(index, _weight_gradient(layer, given, gradient * factors))


def _layers_of(model: nn.Module, weights: Sequence[nn.Parameter]) -> list[nn.Module]:
    """Return the layer of each weight: a linear layer or a norm. Empty if there are other or shared ones."""
    layers: dict[int, list[nn.Module]] = {}
    for layer in model.modules():
        if isinstance(weight := getattr(layer, "weight", None), nn.Parameter):
            layers.setdefault(id(weight), []).append(layer)
    found = [layers[id(weight)] for weight in weights]
    return [own[0] for own in found] if all(len(own) == 1 and _is_simple(own[0]) for own in found) else []


def _is_simple(layer: nn.Module) -> bool:
    if any(layer.children()):
        return False
    return type(layer) is nn.Linear or all(weight.dim() == 1 for weight in layer.parameters())


def _depends_on_one_number(gradient: Tensor) -> bool:
    """Return whether a function with this gradient depends only on the difference of two logits, or on one."""
    if gradient.shape[1] == 1:
        return True
    return bool(gradient.sum(1).abs().max() <= 1e-3 * gradient.abs().max())


def _along(gradient: Tensor) -> Tensor:
    """Return the derivative with respect to that number, for each row."""
    return (gradient[:, 0] - gradient[:, 1]) / 2 if gradient.shape[1] == 2 else gradient[:, 0]


def _weight_gradient(layer: nn.Module, given: Tensor, gradient: Tensor) -> Tensor:
    weight = layer.weight
    assert isinstance(weight, nn.Parameter)
    if type(layer) is nn.Linear:
        product = gradient.flatten(0, -2).T @ given.to(gradient.dtype).flatten(0, -2)
        return product.to(weight.dtype)
    with torch.enable_grad():
        output = layer(given)
    return torch.autograd.grad(output, weight, gradient.to(output.dtype))[0]
