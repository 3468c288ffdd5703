"""The published importance of units: the loss's sensitivity to what they contribute. (Super Tickets, section 3)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.cross_entropy import CrossEntropy

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from transformers import PreTrainedModel

    from tombola.masks import Units
else:
    torch = lazy_module("torch")


def contribution_scores(model: PreTrainedModel, units: Units, batches: Iterable[Batch]) -> dict[str, Tensor]:
    """Score heads, FFNs and neurons by their contributions, averaged over batches with the model in eval mode.

    The score of a unit is Σ |Σ_d ∂L/∂o · o| over the examples and tokens of a batch with mean loss L: o is a head's
    context, an FFN's output or a neuron's activation. The released code accumulates gradients over batches and counts
    padding; this function treats each batch separately and counts only real tokens.

    Args:
        model: The model whose units are scored.
        units: Its heads, FFNs or neurons.
        batches: Batches with labels.
    """
    totals = {group.name: torch.zeros(group.shape, dtype=torch.float64) for group in units.groups}
    count = 0
    model.eval()
    with _frozen(model), _contributions(model, units) as contributions:
        for batch in batches:
            count += 1
            for name, total in _of_batch(model, batch, units, contributions).items():
                totals[name] += total.cpu()
    return {name: total / count for name, total in totals.items()}


def _of_batch(
    model: PreTrainedModel, batch: Batch, units: Units, contributions: dict[str, list[Tensor]]
) -> dict[str, Tensor]:
    """Return each unit's sum over the real tokens of one batch; shared layers are passed several times."""
    contributions.clear()
    loss = CrossEntropy().loss(model, batch)
    gradients = iter(
        torch.autograd.grad(loss, [tensor for passes in contributions.values() for tensor in passes])
    )
    importance = {}
    for name, passes in contributions.items():
        products = sum(values.detach() * next(gradients) for values in passes)
        assert isinstance(products, torch.Tensor)
        parts = products.flatten(0, -2).unflatten(-1, (units.by_name[name].count, -1))
        per_token = parts.sum(-1).abs_()
        real = (
            batch["attention_mask"].flatten() if "attention_mask" in batch else per_token.new_ones(len(parts))
        )
        importance[name] = real.to(per_token) @ per_token
    return importance


@contextmanager
def _frozen(model: PreTrainedModel) -> Iterator[None]:
    """Freeze all parameters in this context, so that no parameter gradients are computed."""
    asking = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        for parameter in asking:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in asking:
            parameter.requires_grad_()


@contextmanager
def _contributions(model: PreTrainedModel, units: Units) -> Iterator[dict[str, list[Tensor]]]:
    """Record each group's contributions to forward passes, by group: one for every time that its layer is passed.

    The first of them starts the graph.
    """
    contributions: dict[str, list[Tensor]] = {}

    def watch(name: str, values: Tensor) -> Tensor:
        values = values if values.requires_grad else values.detach().requires_grad_()
        contributions.setdefault(name, []).append(values)
        return values

    hooks = []
    layers = units.layout.layers()
    for group in units.groups:
        assert group.layer is not None
        outward = layers[group.layer]["output" if group.kind == "head" else "down"]
        projection = model.base_model.get_submodule(outward.tensor.removesuffix(".weight"))
        if group.kind == "ffn":
            hooks.append(projection.register_forward_hook(_after(group.name, watch)))
        else:
            hooks.append(projection.register_forward_pre_hook(_before(group.name, watch)))
    try:
        yield contributions
    finally:
        for hook in hooks:
            hook.remove()


def _before(name: str, watch: Callable[[str, Tensor], Tensor]) -> Callable[[nn.Module, Any], Any]:
    return lambda module, inputs: (watch(name, inputs[0]), *inputs[1:])


def _after(name: str, watch: Callable[[str, Tensor], Tensor]) -> Callable[[nn.Module, Any, Tensor], Tensor]:
    return lambda module, inputs, output: watch(name, output)
