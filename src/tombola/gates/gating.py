"""The state of a learned mask and its update in one optimizer step."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from math import sqrt
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from tombola.gates.base import Budget, Gate, Moment
from tombola.gates.cuts import below_all, highest_shut, lift_ties
from tombola.gates.starting import draw_at, first_scores, ordered_scores, total_openness
from tombola.gates.weights import GatedWeights, TrainedWeights
from tombola.masks import Mask, Scope, Scores, Units, draw
from tombola.masks.bits import Bits
from tombola.masks.layout import loaded_parameters_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Gating(nn.Module):
    """A score for each unit of a model, under a gate and a budget.

    One step is `sample`, any number of forward and backward passes of the model, `collect`, the optimizer's step on
    the scores, and `settle`. If passes use separate samples, call `gather` before each further `sample`. The noise
    depends only on the seed, the step and the sample number, so that all processes of a run see the same gates and a
    resumed run continues with them.
    """

    cuts: Tensor
    multipliers: Tensor

    def __init__(
        self,
        units: Units,
        model: "PreTrainedModel",
        gate: Gate,
        budget: Budget,
        *,
        seed: int,
        sparsity: float = 0.0,
        scope: Scope = "global",
        importance: Scores | None = None,
        pattern: str | None = None,
    ) -> None:
        """Initialise the scores as the gate defines, from the weights' magnitudes or in the order of `importance`."""
        super().__init__()
        self.units, self.gate, self.budget = units, gate, budget
        self.seed, self.sparsity, self.scope, self.pattern = seed, sparsity, scope, pattern
        magnitudes = Scores.magnitude(units, model)
        share = budget.count_at(0.0, sparsity) or 0.0
        if importance is None:
            started = first_scores(gate, magnitudes, share, scope, seed, pattern)
        else:
            started = ordered_scores(gate, magnitudes, importance, share, scope, seed, pattern)
        self.scores = nn.ParameterList([nn.Parameter(scores) for scores, _ in started])
        self.register_buffer("cuts", torch.tensor([cut for _, cut in started]))
        self.register_buffer("multipliers", torch.zeros(3, dtype=torch.float64))
        self._weights: GatedWeights | None = None
        self._factors: list[Tensor] = []
        if share and self._in_matrices:
            self._project(share)

    @property
    def _in_matrices(self) -> bool:
        """Whether rows or a pattern determine what is open, so that no single cut per group does."""
        return self.scope == "row" or self.pattern is not None

    def hold(self, model: "PreTrainedModel", train_weights: bool = False) -> None:
        """Put a model's weights under the gates until `release`, frozen or trained together with the scores."""
        self.scores.to(
            model.device
        )  # the multipliers stay where they are: Apple's GPUs have no 64-bit floats
        self.cuts = self.cuts.to(model.device)
        self._weights = (TrainedWeights if train_weights else GatedWeights)(model, self.units)
        forgotten = self.gate.straight and not train_weights
        self._factors = self._room() if forgotten else [torch.empty_like(score) for score in self.scores]

    def release(self) -> None:
        """Release the model with its original weights, or with the trained ones."""
        if self._weights is not None:
            self._weights.release()
        self._weights, self._factors = None, []

    @torch.no_grad()
    def sample(self, step: int, number: int = 0) -> None:
        """Sample the gates for one step (its `number`-th sample) and write the gated weights into the model."""
        assert self._weights is not None
        self._weights.begin()
        generator = torch.Generator(self.cuts.device).manual_seed(_seed(self.seed, step, number))
        for group, margin, factors in zip(self.units.groups, self._margins(), self._factors, strict=True):
            self._weights.write(group, self.gate.sample(margin, factors, generator))

    @contextmanager
    def shown(self, step: int) -> Iterator[None]:
        """Let the model hold the gated weights of a step in this context, before the step begins."""
        assert self._weights is not None
        self.sample(step)
        try:
            yield
        finally:
            self._weights.rest()

    @torch.no_grad()
    def gather(self) -> None:
        """Add the gradients that the model received since the last sample to those of the scores."""
        assert self._weights is not None
        if self.scores[0].grad is not None and not self._weights.touched:
            return
        margins = repeat(None, len(self.scores)) if self.gate.straight else self._margins()
        rows = zip(self.scores, self.units.groups, self._factors, margins, strict=True)
        for score, group, factors, margin in rows:
            gradient = self._weights.gradient(group, factors)
            if margin is not None:
                gradient = self.gate.back(gradient, factors, margin)
            score.grad = gradient if score.grad is None else score.grad.add_(gradient)
        self._weights.clear()

    @torch.no_grad()
    def collect(self, share: float, scale: float = 1.0) -> None:
        """Gather remaining gradients, add the budget's gradient to the scores, and prepare for the optimizer step.

        Args:
            share: The completed fraction of the search, from 0 to 1.
            scale: The loss scale of the model's gradients, as in 16-bit training.
        """
        assert self._weights is not None
        self.gather()
        self._weights.rest()
        pressure = self.budget.pressure(
            Moment(share, self.sparsity, self.multipliers, self.openness, lambda: self._gradient() / scale)
        )
        if not pressure:
            return
        for score, margin in zip(self.scores, self._margins(), strict=True):
            cast(Tensor, score.grad).add_(
                self.gate.openness_slope(margin), alpha=scale * pressure / self.units.count
            )

    def _gradient(self) -> float:
        """Return the root mean square of the scores' gradients, times their number."""
        norms = [torch.linalg.vector_norm(cast(Tensor, score.grad)) for score in self.scores]
        return float(torch.linalg.vector_norm(torch.stack(norms))) * sqrt(self.units.count)

    def gathered(self) -> list[Tensor]:
        """Return the gradients that `gather` has accumulated, of the scores and of gated weights that are trained."""
        assert self._weights is not None
        return [score.grad for score in self.scores if score.grad is not None] + self._weights.gathered

    def settle(self, step: int, steps: int) -> None:
        """After an optimizer step, clamp the scores and restore the exact count if due.

        The count is always restored after the last step.
        """
        self._bound()
        if step == steps or self.budget.resets_after(step):
            sparsity = self.budget.count_at(step / steps, self.sparsity)
            if sparsity is not None:
                self.reset(sparsity)

    @torch.no_grad()
    def _bound(self) -> None:
        bound = self.gate.bound
        if bound is not None:
            for score, cut in zip(self.scores, cast(list[float], self.cuts.tolist()), strict=True):
                score.clamp_(cut - bound, cut + bound)

    @torch.no_grad()
    def reset(self, sparsity: float) -> None:
        """Place the cut so that exactly this fraction of the scores lies below it, per group or over all.

        Open scores that tie with the cut are lifted to the next float above it, so that the cut yields exactly the
        mask of `draw`. If rows or a pattern decide, scores on the wrong side of their matrix's cut are moved across
        it to the same end.
        """
        if self._in_matrices:
            self._project(sparsity)
            return
        kept = list(self.draw(sparsity).bits.values())
        self._cut(kept, together=self.scope == "global")
        for score, open_, cut in zip(self.scores, kept, self.cuts.tolist(), strict=True):
            lift_ties(score, open_, cut)

    def _cut(self, kept: list[Bits], together: bool) -> None:
        """Place the cuts at the highest shut scores, of each group or of all; if none is shut, below all scores."""
        found = [highest_shut(score, open_) for score, open_ in zip(self.scores, kept, strict=True)]
        shut = [cut for cut in found if cut is not None]
        if together and shut:
            found = [max(shut)] * len(found)
        cuts = [
            below_all(score, before) if cut is None else cut
            for score, cut, before in zip(self.scores, found, self.cuts.tolist(), strict=True)
        ]
        self.cuts.copy_(torch.tensor(cuts))

    @torch.no_grad()
    def _project(self, sparsity: float) -> None:
        mask = self.draw(sparsity)
        if mask == self.mask():
            return
        self._cut(list(draw(self.learned(), sparsity, scope="local").bits.values()), together=False)
        for score, group, cut in zip(self.scores, self.units.groups, self.cuts.tolist(), strict=True):
            open_ = mask[group.name].to(score.device)
            score.masked_fill_(~open_ & (score > cut), cut)
            lift_ties(score, mask.bits[group.name], cut)

    @torch.no_grad()
    def fold(self, model: "PreTrainedModel") -> None:
        """Multiply a model's weights by the gates without noise, as a finished search leaves them.

        An exact count is restored first, so that all units of the requested mask are open.
        """
        sparsity = self.budget.count_at(1.0, self.sparsity)
        if sparsity is not None:
            self.reset(sparsity)
        margins = zip(self.units.groups, self._margins(), strict=True)
        factors = {group.name: self.gate.expected(margin) for group, margin in margins}
        parameters = loaded_parameters_of(model)
        for name, factor in self.units.spread(factors):
            parameters[name].mul_(factor)

    def draw(self, sparsity: float) -> Mask:
        """Draw the mask at a sparsity from the scores."""
        return draw_at(self.learned(), sparsity, self.scope, self.pattern)

    def mask(self) -> Mask:
        """Return the mask of the units that are open now."""
        margins = zip(self.units.groups, self._margins(), strict=True)
        return Mask.from_bools(
            self.units, {group.name: margin.detach().cpu() > 0 for group, margin in margins}
        )

    def learned(self) -> Scores:
        """Return the scores without copying them."""
        named = zip(self.units.groups, self.scores, strict=True)
        return Scores(self.units, {group.name: score for group, score in named})

    @torch.no_grad()
    def openness(self) -> float:
        """Return the mean probability of being open, over all units rather than over matrices."""
        return total_openness(self.gate, self._margins()) / self.units.count

    def _margins(self) -> Iterator[Tensor]:
        """Yield the scores minus their cuts, group by group; each tensor is valid until the next one."""
        cuts = cast(list[float], self.cuts.tolist())
        for score, cut, room in zip(self.scores, cuts, self._room(), strict=True):
            yield torch.sub(score.detach(), cut, out=room) if cut else score.detach()

    def _room(self) -> list[Tensor]:
        """Return a buffer per group, all in the same memory: fresh allocations would cost more than the arithmetic."""
        place = self.cuts.new_empty(max(score.numel() for score in self.scores))
        return [place[: score.numel()].view_as(score) for score in self.scores]


def _seed(seed: int, step: int, number: int = 0) -> int:
    """Combine three numbers into a seed that differs from those of batches and heads."""
    entropy = (seed, step, 0x6A7E, number) if number else (seed, step, 0x6A7E)
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
