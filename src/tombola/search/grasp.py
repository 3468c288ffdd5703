"""GraSP: preserve the gradient flow through the masked network. (Wang et al. 2020; a baseline of BERT-Tickets)"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tombola.foundations.lazy import lazy_module
from tombola.objectives.cross_entropy import CrossEntropy
from tombola.search import Evidence, ScorerSettings, scorer

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

    from tombola.masks import Scores, Units
else:
    torch = lazy_module("torch")


class Grasp(ScorerSettings):
    """Settings of GraSP."""

    reads_data: ClassVar[bool] = True

    method: Literal["grasp"] = "grasp"
    batches: int = Field(8, gt=0, description="training batches over which the gradient is summed")


@scorer(Grasp)
def grasp(settings: Grasp, model: PreTrainedModel, units: Units, evidence: Evidence) -> Scores:
    """Remove the weights whose loss hurts the gradient flow least: the highest −θ·(Hg).

    g is the gradient summed over a few batches, H the Hessian of the same loss; the product Hg comes from
    differentiating g·stop(g) batch by batch, so that only one batch's graph is in memory.
    """
    from tombola.masks import Scores

    weights = units.matrices(model)
    parameters = list(weights.values())
    model.eval()
    total = [torch.zeros_like(parameter) for parameter in parameters]
    for batch in evidence.batches(settings.batches):
        gradients = torch.autograd.grad(_loss(model, batch), parameters)
        torch._foreach_add_(total, list(gradients))
    product = [torch.zeros_like(parameter) for parameter in parameters]
    for batch in evidence.batches(settings.batches):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            gradients = torch.autograd.grad(_loss(model, batch), parameters, create_graph=True)
            flow = torch.stack(
                [(gradient * fixed).sum() for gradient, fixed in zip(gradients, total, strict=True)]
            ).sum()
            torch._foreach_add_(product, list(torch.autograd.grad(flow, parameters)))
    values = {
        name: (weight * hessian).detach()
        for (name, weight), hessian in zip(weights.items(), product, strict=True)
    }
    return Scores.total(units, values)


def _loss(model: PreTrainedModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return CrossEntropy().loss(model, batch)
