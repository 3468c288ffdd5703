"""Two forward passes that differ only in dropout, and the disagreement of their predictions."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tombola.objectives import Batch, inputs_of, is_multi_label, logits_of


def two_passes(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the logits of two passes with independent dropout, computed as one pass of the doubled batch."""
    doubled = {name: torch.cat([values, values]) for name, values in inputs_of(batch).items()}
    first, second = logits_of(model(**doubled)).chunk(2)
    return first, second


def symmetric_kl(first: Tensor, second: Tensor) -> Tensor:
    """Return ½·(KL(p‖q) + KL(q‖p)) = ½·Σ (p − q)(log p − log q) of two sets of logits, averaged over the items."""
    p, q = first.float().log_softmax(-1), second.float().log_softmax(-1)
    return 0.5 * ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()


def symmetric_binary_kl(first: Tensor, second: Tensor) -> Tensor:
    """Return the same for each label separately: ½·(p − q)(logit p − logit q), averaged over all labels."""
    first, second = first.float(), second.float()
    return 0.5 * ((first.sigmoid() - second.sigmoid()) * (first - second)).mean()


def disagreement(first: Tensor, second: Tensor, labels: Tensor) -> Tensor:
    """Return the disagreement of two passes: symmetric KL over the items, mean squared difference for regression."""
    if is_multi_label(labels):
        return symmetric_binary_kl(first, second)
    if labels.is_floating_point():
        return F.mse_loss(first.float(), second.float())
    items = labels.ne(-100)
    return symmetric_kl(first[items], second[items])
