"""Word swaps: training on texts whose words are replaced with the neighbours that raise the loss most.

The gradient of the loss with respect to a word's embedding predicts, to first order, how much each neighbour would
raise the loss (Ebrahimi et al. 2018, HotFlip). One more pass per batch attacks every text of the batch this way, which
an attack that asks the model about each candidate cannot afford.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from tombola.errors import TombolaError
from tombola.foundations.lazy import lazy_module
from tombola.objectives import Batch, Objective
from tombola.objectives.distillation import STATES
from tombola.objectives.perturbation import embedding_of, perturbed
from tombola.objectives.settings import Adversary, Ascent, adversary

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = lazy_module("torch")

SWAPS = "swaps"
"""The batch column with the tokens that may replace each token (examples, tokens, candidates); −1: none."""

ROUNDING = 1e-4
"""Subtracted before rounding up, because 100 · 0.15 in 32 bits is more than 15."""

UNMOVED = Ascent(kind="swaps", initial=0.0)
"""A perturbation of zero, which is there for its gradient."""


class SwapAdversary(Adversary):
    """Settings of word swaps."""

    kind: Literal["swaps"] = "swaps"
    share: float = Field(
        0.3, gt=0, le=1, description="share of a text's words to replace, of those that have neighbours"
    )
    candidates: int = Field(20, ge=1, le=50, description="nearest neighbours to choose from for each word")
    min_cosine: float = Field(
        0.5,
        ge=-1,
        le=1,
        description="minimum cosine similarity of a word and its neighbour, as in TextFooler",
    )
    steps: int = Field(1, ge=1, description="rounds of choosing the words, with one pass each")
    weight: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="share of the changed texts in the loss; the rest is that of the unchanged ones",
    )

    @property
    def passes(self) -> int:
        """One over the unchanged texts, and one for each round."""
        return 1 + self.steps


@adversary(SwapAdversary)
@dataclass(frozen=True)
class WordSwaps(Objective):
    """Word swaps: the loss on each text, and on the text with the neighbours that raise this loss most.

    Both parts count, by `weight`. The pass on the unchanged text gives the gradient too, so that a step with one round
    costs two plain steps. A teacher's answer to the unchanged text counts for both parts; its hidden states count only
    for the unchanged text.
    """

    inner: Objective
    settings: SwapAdversary

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the weighted sum over all passes, keeping their graphs."""
        losses: list[Tensor] = []

        def one(batch: Batch, share: float, delta: Tensor) -> Tensor | None:
            loss = self.inner.loss(model, batch)
            losses.append(share * loss)
            return torch.autograd.grad(loss, delta, retain_graph=True)[0] if delta.requires_grad else None

        self._passes(model, batch, one)
        return torch.stack(losses).sum()

    def step(self, model: nn.Module, batch: Batch, backward: Callable[[Tensor], None]) -> Tensor:
        """Keep one graph at a time by calling `backward` after each pass."""
        losses: list[Tensor] = []

        def one(batch: Batch, share: float, delta: Tensor) -> Tensor | None:
            losses.append(share * self.inner.step(model, batch, lambda part: backward(share * part)))
            return delta.grad

        self._passes(model, batch, one)
        return torch.stack(losses).sum()

    def at(self, share: float) -> None:
        """Pass the progress to the inner objective."""
        self.inner.at(share)

    def _passes(
        self, model: nn.Module, batch: Batch, one: Callable[[Batch, float, Tensor], Tensor | None]
    ) -> None:
        """Run the pass on the unchanged texts, and one on the changed texts for each round."""
        if SWAPS not in batch:
            raise TombolaError(
                f"adversary: swaps needs the column {SWAPS!r} with the neighbours of each token, which the batches "
                "lack: add it to the collator with Collate.with_column and SwapTable.options_of"
            )
        rounds, weight = self.settings.steps, self.settings.weight
        shares = [1 - weight] + [weight / rounds] * rounds
        current = batch
        for left, share in zip(reversed(range(rounds + 1)), shares, strict=True):
            with perturbed(model, current, UNMOVED) as delta:
                delta.track(left > 0)
                gradient = one(current, share, delta.values)
            if gradient is not None:
                ids = swapped(
                    batch["input_ids"],
                    batch[SWAPS],
                    gradient,
                    embedding_of(model).weight.detach(),
                    self.settings.share,
                )
                current = {name: values for name, values in batch.items() if name != STATES}
                current["input_ids"] = ids


def swapped(ids: Tensor, options: Tensor, gradient: Tensor, embeddings: Tensor, share: float) -> Tensor:
    """Replace a share of each text's words with the neighbours that raise the loss most, to first order.

    A word's gain is the largest g · (e(neighbour) − e(word)). The words with the largest positive gains are replaced,
    at most `share` of those that have neighbours, rounded up.

    Args:
        ids: The tokens of each text (examples, tokens).
        options: The tokens that may replace each (examples, tokens, candidates); −1 where there is none.
        gradient: The gradient of the loss with respect to each token's embedding (examples, tokens, size).
        embeddings: The word embeddings (vocabulary, size).
        share: The share of the words with options to replace.
    """
    gradient = gradient.float()
    gains = torch.full(options.shape, -torch.inf, device=ids.device)
    for candidate in range(options.shape[-1]):  # one at a time: all at once would take 100 MB
        tokens = options[..., candidate]
        rise = (gradient * embeddings[tokens.clamp_min(0)].float()).sum(-1)
        gains[..., candidate] = rise.masked_fill(tokens < 0, -torch.inf)
    gains = gains - (gradient * embeddings[ids].float()).sum(-1, keepdim=True)
    gain, chosen = gains.max(dim=-1)
    allowed = (options.ge(0).any(-1).sum(1, keepdim=True) * share - ROUNDING).ceil().clamp_min(1)
    rank = gain.argsort(dim=1, descending=True, stable=True).argsort(dim=1, stable=True)
    replaced = (rank < allowed) & (gain > 0)
    return torch.where(replaced, options.gather(-1, chosen[..., None]).squeeze(-1), ids)
