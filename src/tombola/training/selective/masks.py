"""The candidates for freezing, and their selection by quantiles of a risk. (ROSE, §3)"""

import math
from collections.abc import Iterable, Iterator
from functools import cached_property

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from tombola.families import family_of
from tombola.training.selective.settings import Selection


class Candidates:
    """The trainable `weight` tensors of a model's layers: 8 in each of RoBERTa's, 96 in its base model.

    Biases, embeddings and the head are not candidates: they always update. Neither is a tensor that a ticket has
    removed entirely; weights that are exactly zero count as removed and do not enter any norm or quantile. The
    candidates are found on first use, so a mask must be applied before.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = model

    @cached_property
    def _live(self) -> list[tuple[int, str, nn.Parameter, bool]]:
        return [
            (layer, name.removesuffix(".weight"), weight, not weight.all())
            for layer, module in enumerate(family_of(self.model).layers_of(self.model))
            for name, weight in module.named_parameters()
            if name.endswith(".weight") and weight.requires_grad and weight.any()
        ]

    @property
    def places(self) -> list[tuple[int, str]]:
        """The layer of each candidate and its module path within the layer."""
        return [(layer, kind) for layer, kind, *_ in self._live]

    @property
    def weights(self) -> list[nn.Parameter]:
        """The candidate tensors."""
        return [weight for *_, weight, _ in self._live]

    @property
    def pruned(self) -> list[bool]:
        """Whether each candidate has removed weights."""
        return [pruned for *_, pruned in self._live]

    def norms(self, values: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the norm over each tensor's kept weights of one value per weight."""
        if not any(self.pruned):
            yield from torch._foreach_norm(list(values))
        else:
            for weight, value in zip(self.weights, values, strict=True):
                yield torch.linalg.vector_norm(value * weight.ne(0))

    def norm(self, index: int, value: Tensor) -> Tensor:
        """Return the norm over a tensor's kept weights of one value per weight."""
        _, _, weight, pruned = self._live[index]
        norm: Tensor = torch.linalg.vector_norm(value * weight.ne(0) if pruned else value)
        return norm

    def within(self, risks: Iterable[Tensor], selection: Selection) -> Iterator[Tensor]:
        """Yield True where the risk allows an update, per weight or once per tensor.

        Single weights are compared within their tensor, whole tensors with each other.
        """
        if not selection.elementwise:
            yield from within(torch.stack(list(risks)), selection.lower, selection.upper).unbind()
            return
        for pruned, weight, risk in zip(self.pruned, self.weights, risks, strict=True):
            if pruned:
                kept = weight.ne(0)
                allowed = torch.ones_like(kept)
                allowed[kept] = within(risk[kept], selection.lower, selection.upper)
                yield allowed
            else:
                yield within(risk, selection.lower, selection.upper)

    def random_risks(self, selection: Selection, seed: int) -> Iterator[Tensor]:
        """Yield random risks without ties, which allow as many updates as any other risk."""
        generator = torch.Generator().manual_seed(seed)
        if not selection.elementwise:
            yield from torch.randperm(len(self.weights), generator=generator).unbind()
            return
        for weight in self.weights:
            ranks = torch.randperm(weight.numel(), generator=generator)
            yield ranks.to(weight.device).view_as(weight)


def within(values: Tensor, lower: float, upper: float) -> Tensor:
    """Return True where a value lies between two percentiles, inclusive, interpolated linearly.

    Without ties these are the values of rank ⌈lower·(n−1)/100⌉ to ⌊upper·(n−1)/100⌋, counted from 0: an interpolated
    quantile lies between two neighbours, so comparing with the neighbours suffices.
    """
    last, flat = values.numel() - 1, values.flatten()
    allowed = torch.ones_like(values, dtype=torch.bool)
    if upper < 100:
        allowed &= values <= flat.kthvalue(math.floor(upper * last / 100) + 1).values
    if lower > 0:
        allowed &= values >= flat.kthvalue(math.ceil(lower * last / 100) + 1).values
    return allowed
