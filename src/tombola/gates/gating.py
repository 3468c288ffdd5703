"""The state of a learned mask, and what one optimizer step does with it."""

from collections.abc import Iterator
from itertools import repeat
from math import sqrt
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from tombola.gates.base import Budget, Gate, Moment
from tombola.gates.cuts import highest_shut, lift_ties
from tombola.gates.starting import draw_at, first_scores, ordered_scores
from tombola.gates.weights import GatedWeights, TrainedWeights
from tombola.masks import Mask, Scope, Scores, Units, draw

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Gating(nn.Module):
    """A score for each unit of a model, under a gate and a budget.

    One step is `sample`, as many forward and backward passes of the model as the objective likes, `collect`,
    the optimizer's step on the scores, and `settle`. Where passes have samples of their own, `gather` comes before
    each further `sample`. The noise depends on the seed and the numbers of step and sample alone, so that all
    processes of a run see the same gates and a resumed run goes on with them.
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
        """Start the scores as the gate says: from the magnitudes of the weights, or in the order of `importance`."""
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
        """Whether no single cut of a group tells what is open: rows or a pattern do."""
        return self.scope == "row" or self.pattern is not None

    def hold(self, model: "PreTrainedModel", train_weights: bool = False) -> None:
        """Take a model's weights under the gates, until `release`: frozen, or trained together with the scores."""
        self.to(model.device)
        self._weights = (TrainedWeights if train_weights else GatedWeights)(model, self.units)
        forgotten = self.gate.straight and not train_weights
        self._factors = self._room() if forgotten else [torch.empty_like(score) for score in self.scores]

    def release(self) -> None:
        """Give the model back as it was, or as it was trained."""
        if self._weights is not None:
            self._weights.release()
        self._weights, self._factors = None, []

    @torch.no_grad()
    def sample(self, step: int, number: int = 0) -> None:
        """Draw the gates of one step, or of its so-manieth sample, and write the gated weights into the model."""
        assert self._weights is not None
        self._weights.begin()
        generator = torch.Generator(self.cuts.device).manual_seed(_seed(self.seed, step, number))
        for group, margin, factors in zip(self.units.groups, self._margins(), self._factors, strict=True):
            self._weights.write(group, self.gate.sample(margin, factors, generator))

    @torch.no_grad()
    def gather(self) -> None:
        """Add the gradients that have reached the model since the last sample to those of the scores."""
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
        """Gather what is left, and add the budget's gradient to the scores. Weights that train are ready to step.

        Args:
            share: How much of the search is done, from 0 to 1.
            scale: By how much the model's gradients are scaled, as 16-bit ones are.
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
        """The root mean square of the scores' gradients, times their number."""
        norms = [torch.linalg.vector_norm(cast(Tensor, score.grad)) for score in self.scores]
        return float(torch.linalg.vector_norm(torch.stack(norms))) * sqrt(self.units.count)

    def gathered(self) -> list[Tensor]:
        """The gradients that `gather` has added up: of the scores, and of gated weights that train."""
        assert self._weights is not None
        return [score.grad for score in self.scores if score.grad is not None] + self._weights.gathered

    def settle(self, step: int, steps: int) -> None:
        """After a step of the optimizer: hold scores in bounds, and restore the exact count if that is due.

        The count is always restored at the end.
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
        """Put the cut where exactly this share of the scores lies below it, of every group or of all.

        Scores that tie with the cut and stay open are lifted above it by the smallest number there is, so that
        the cut tells exactly the mask that `draw` gives. Where rows or a pattern decide, scores on the wrong side of
        their matrix's cut are moved to it, so that it tells exactly that mask too.
        """
        if self._in_matrices:
            self._project(sparsity)
            return
        kept = list(self.draw(sparsity).bits.values())
        cuts = [highest_shut(score, open_) for score, open_ in zip(self.scores, kept, strict=True)]
        self.cuts.copy_(torch.tensor([max(cuts)] * len(cuts) if self.scope == "global" else cuts))
        for score, open_, cut in zip(self.scores, kept, self.cuts.tolist(), strict=True):
            lift_ties(score, open_, cut)

    @torch.no_grad()
    def _project(self, sparsity: float) -> None:
        wanted = self.draw(sparsity)
        if wanted == self.mask():
            return
        ranked = draw(self.learned(), sparsity, scope="local").bits.values()
        cuts = [highest_shut(score, open_) for score, open_ in zip(self.scores, ranked, strict=True)]
        self.cuts.copy_(torch.tensor(cuts))
        for score, group, cut in zip(self.scores, self.units.groups, self.cuts.tolist(), strict=True):
            open_ = wanted[group.name].to(score.device)
            score.masked_fill_(~open_ & (score > cut), cut)
            lift_ties(score, wanted.bits[group.name], cut)

    def draw(self, sparsity: float) -> Mask:
        """The mask that the scores give at a sparsity."""
        return draw_at(self.learned(), sparsity, self.scope, self.pattern)

    def mask(self) -> Mask:
        """What is open now."""
        margins = zip(self.units.groups, self._margins(), strict=True)
        return Mask.from_bools(
            self.units, {group.name: margin.detach().cpu() > 0 for group, margin in margins}
        )

    def learned(self) -> Scores:
        """The scores as they are, without a copy."""
        named = zip(self.units.groups, self.scores, strict=True)
        return Scores(self.units, {group.name: score for group, score in named})

    @torch.no_grad()
    def openness(self) -> float:
        """The mean over all units, not over matrices, of the probability to be open."""
        total = sum(self.gate.openness(margin).sum(dtype=torch.float64) for margin in self._margins())
        return float(total) / self.units.count

    def _margins(self) -> Iterator[Tensor]:
        """The scores less their cuts, a group at a time; each lasts until the next is asked for."""
        cuts = cast(list[float], self.cuts.tolist())
        for score, cut, room in zip(self.scores, cuts, self._room(), strict=True):
            yield torch.sub(score.detach(), cut, out=room) if cut else score.detach()

    def _room(self) -> list[Tensor]:
        """A tensor like each group's scores, all in one place: fresh memory for each would cost more than the sums."""
        place = self.cuts.new_empty(max(score.numel() for score in self.scores))
        return [place[: score.numel()].view_as(score) for score in self.scores]


def _seed(seed: int, step: int, number: int = 0) -> int:
    """One seed of three numbers, far from those that batches and heads are drawn from."""
    entropy = (seed, step, 0x6A7E, number) if number else (seed, step, 0x6A7E)
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
