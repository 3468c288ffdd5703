"""Estimates of the change in loss without a unit: first-order Taylor scores and two kinds of Fisher information."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch
from tombola.objectives.cross_entropy import CrossEntropy

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel

    from tombola.masks import Units
else:
    torch = lazy_module("torch")

Criterion = Literal["taylor", "fisher", "mask_fisher"]


def unit_scores(
    criterion: Criterion, model: PreTrainedModel, units: Units, batches: Iterable[Batch]
) -> dict[str, Tensor]:
    """Score each unit, with all its weights and biases, by an average over batches with the model in eval mode.

    - taylor: |Σ w · g|, with the gradient g of a batch's mean loss: the first-order change if the unit is zeroed.
    - fisher: ½ Σ w² · g², the second-order change, with the squared gradients of *batches* as the Hessian's diagonal.
    - mask_fisher: ½ (Σ w · g)², where Σ w · g is the gradient of a gate on the whole unit: the Fisher information of a
      mask (Kwon et al. 2022, A Fast Post-Training Pruning Framework for Transformers). Scores of large and of small
      units add up on one scale, where sums of taylor's absolute values favour many small units.

    Args:
        criterion: One of the above.
        model: The model whose units are scored.
        units: Any units: heads, neurons, FFNs, layers, single weights …
        batches: Batches with labels.
    """
    from tombola.masks.layout import loaded_parameters_of
    from tombola.masks.scores import totals as totals_of

    model.eval()
    parameters = {
        name: parameter
        for name, parameter in loaded_parameters_of(model).items()
        if name in {part.tensor for group in units.groups for part in (*group.parts, *group.biases)}
    }
    totals = {group.name: torch.zeros(group.shape, dtype=torch.float64) for group in units.groups}
    count = 0
    for batch in batches:
        count += 1
        loss = CrossEntropy().loss(model, batch)
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        products = {
            name: _product(criterion, parameter.detach(), gradient)
            for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True)
        }
        for name, value in totals_of(units, products).items():
            totals[name] += _of_unit(criterion, value).double().cpu()
    return {name: total / max(count, 1) for name, total in totals.items()}


def _product(criterion: Criterion, weight: Tensor, gradient: Tensor | None) -> Tensor:
    if gradient is None:  # the loss does not depend on it
        return torch.zeros_like(weight)
    return 0.5 * (weight * gradient) ** 2 if criterion == "fisher" else weight * gradient


def _of_unit(criterion: Criterion, total: Tensor) -> Tensor:
    if criterion == "fisher":
        return total
    return total.abs() if criterion == "taylor" else 0.5 * total**2
