"""Draw the mask that keeps the most importance within a target: a speed-up, a latency, a share of parameters."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tombola.errors import RecipeError, TombolaError
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ScoreStage, StageResult, UsesFamily
from tombola.pipeline.stages.defend import Defend, tokenizer_of
from tombola.pipeline.stages.fitting_costs import ROUNDS, Costs
from tombola.pipeline.stages.latency import Latency
from tombola.recipe.drawing import Layers, Layout, Quantity
from tombola.search import SearchSettings, searches
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask, Scores
    from tombola.masks.fitting import Kept
    from tombola.shrink.texts import Texts

logger = logging.getLogger(__name__)

FIT = "fit.json"
NEAR = 0.02
"""The relative deviation of the measured time from the target beyond which the choice is corrected."""
TOLERANCE = 0.05
"""The final deviation beyond which a faster choice is preferred to a slower one."""
CORRECTIONS = 3
"""The most corrections of the choice."""


class Fitted(StageResult):
    """The target, and the value that the chosen model reaches.

    Attributes:
        quantity: The quantity of the target.
        target: Its value, after this step of a gradual removal.
        reached: The quantity of the chosen model: measured in turns if it is a time, otherwise counted.
        layers: Heads and neurons of each layer; None for a removed layer.
        note: What the layout could not do.
    """

    quantity: Quantity
    target: float
    reached: float
    layers: list[tuple[int, int] | None]
    note: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class FitStage(UsesFamily, MaskStage):
    """A mask that meets a target. It has the fingerprint of the pre-trained model, whatever model was scored."""

    kind: ClassVar = "fit"
    version: ClassVar = 4
    overhead: ClassVar = 15.0

    model: ModelSource
    data: DataSource
    search: SearchSettings
    scores: ScoreStage
    quantity: Quantity
    value: float
    layout: Layout
    multiple: int
    seed: int
    latency: Latency | None = None
    """The latency table, if the target is a time."""
    defend: Defend | None = None
    """The defense, if the target is a time: its time counts for the small model, not for the dense one."""
    within: MaskStage | None = None
    """The mask that cut out the scored model, after the first step of a gradual removal."""
    progress: float = 1.0
    """The share of the way to the target after this step."""
    layers: Layers = "importance"
    """How many layers a uniform layout keeps."""

    @property
    def label(self) -> str:
        """The target."""
        words = {
            "sparsity": f"{self.value:.0%} of the weights removed",
            "speedup": f"{self.value:g} × speed",
            "latency": f"{self.value:g} ms",
            "parameters": f"{self.value:.0%} of the parameters",
        }
        step = "" if self.progress == 1 else f", {self.progress:.0%} of the way"
        return f"draw {self.layout} layers for {words[self.quantity]}{step}"

    def check(self) -> None:
        """Raise if no choice of these units meets the target, as far as that is known without timing."""
        import torch

        from tombola.masks import Scores

        origin = self.model.outline(self.data.definition)
        units = self.search.units_of(origin)
        alike = Scores(units, {group.name: torch.zeros(group.shape) for group in units.groups})
        try:
            _Choice(self, origin, alike).check(Costs(self, origin) if self.latency is None else None)
        except TombolaError as error:
            place = "" if str(error).startswith("draw.") else f"draw.{self.quantity}: "
            raise RecipeError(f"{place}{error}") from None

    def run(self, space: Workspace) -> None:
        """Choose units within the cost; if the target is a time, measure the choice and correct it."""
        from tombola.masks.nesting import layers_left, lift

        origin = self.model.load(self.data.definition, self.seed)
        scores = space.read(self.scores)
        within = self.within.load(space) if self.within else None
        choice = _Choice(self, origin, scores)
        texts = self._texts(space, origin)
        costs = Costs(self, origin, space.read(self.latency) if self.latency else None, texts)
        kept = choice.make(costs)
        reached = costs.reached(kept)
        if texts is not None:
            kept, reached = self._corrected(space, choice, costs, kept, texts)
        mask = choice.mask(kept)
        if within is not None:
            remaining = (
                layers_left(within) if self.layout == "uniform" else list(within.units.layout.layers())
            )
            mask = lift(mask, within, remaining)
        self.save(space, mask, origin.num_parameters())
        if choice.note:
            logger.warning("%s", choice.note)
        layers = [None if layer is None else (layer.heads, layer.neurons) for layer in kept]
        space.write_json(
            FIT,
            Fitted(
                quantity=self.quantity, target=costs.target, reached=reached, layers=layers, note=choice.note
            ),
        )

    def _texts(self, space: Workspace, origin: PreTrainedModel) -> Texts | None:
        """Return the texts to time models on, if the target is a time: the table's texts, after the defense."""
        if self.latency is None:
            return None
        return self.latency.texts(origin.config, tokenizer_of(self.latency.model, self.defend, space))

    def _corrected(
        self, space: Workspace, choice: _Choice, costs: Costs, kept: list[Kept | None], texts: Texts
    ) -> tuple[list[Kept | None], float]:
        """Measure the chosen model, and correct the table accordingly, until it is near the target."""
        from tombola.shrink.latency import time_shares

        assert self.latency is not None
        tried: dict[tuple[Kept | None, ...], dict[int, tuple[float, float]]] = {}
        for number in range(CORRECTIONS + 1):
            space.progress(number, CORRECTIONS + 1, {})
            small = choice.model(kept)
            timed = time_shares(
                choice.origin, [small], texts, self.latency.batch_sizes, self.latency.threads, rounds=ROUNDS
            )
            tried[tuple(kept)] = {size: (dense, share) for size, (dense, (share,)) in timed.items()}
            if abs(costs.excess(tried[tuple(kept)])) <= NEAR:
                break
            costs.correct(kept, tried[tuple(kept)])
            kept = choice.make(costs)
            if tuple(kept) in tried:
                break
        best = min(tried, key=lambda geometry: _distance(costs.excess(tried[geometry])))
        return list(best), costs.measured(tried[best])

    def fitted(self, folder: Path) -> Fitted:
        """Read the target, and the value reached."""
        return Fitted.load(folder / FIT)


def _distance(excess: float) -> tuple[bool, bool, float]:
    """Return a key that sorts choices near the target first, then faster ones, then slower ones."""
    return abs(excess) > TOLERANCE, abs(excess) > TOLERANCE and excess > 0, abs(excess)


class _Choice:
    """The choice of the units to keep, depending on the layout."""

    def __init__(self, stage: FitStage, origin: PreTrainedModel, scores: Scores) -> None:
        from tombola.families import family_of
        from tombola.masks.fitting import Ranking
        from tombola.shrink.uniform import head_options

        self.stage, self.origin, self.scores = stage, origin, scores
        self.note: str | None = None
        heads: tuple[int, ...] | None = None
        least = max(getattr(stage.search, "min_heads", 0), 1 if stage.progress < 1 or stage.within else 0)
        family = family_of(origin)
        if stage.layout == "uniform":
            heads = tuple(head_options(origin.config, family))
            if "head" in scores.units.kinds and len(heads) == 1:
                self.note = (
                    f"the config of a {origin.config.model_type} model cannot represent fewer heads, so every "
                    "remaining layer keeps all of them"
                )
        lowest = stage.multiple if stage.progress < 1 or stage.within else 0
        self.ranking = Ranking(scores, stage.multiple, heads, min_heads=least, min_neurons=lowest)
        self.fixed = family.fixed_layers if self.uniform else ()

    @property
    def uniform(self) -> bool:
        """Whether all remaining layers are alike."""
        return self.stage.layout == "uniform" or self.ranking.kinds == {"layer"}

    def check(self, costs: Costs | None) -> None:
        """Raise if no choice is within the costs; if they are not known yet, if the layout itself is impossible."""
        from tombola.masks.fitting import Cost, OutOfReach, check_freely, check_uniform

        known = costs.within_target() if costs else [Cost(0.0, lambda heads, neurons: 0.0)]
        try:
            if self.uniform:
                check_uniform(self.ranking, known, self.fixed, self.stage.layers)
            else:
                check_freely(self.ranking, known)
        except OutOfReach as error:
            assert costs
            raise costs.out_of_reach(error.lowest) from None

    def make(self, costs: Costs) -> list[Kept | None]:
        """Choose the most importance within the costs."""
        from tombola.masks.fitting import OutOfReach, fit_uniform
        from tombola.masks.knapsack import fit_freely

        try:
            if self.uniform:
                return fit_uniform(self.ranking, costs.within_target(), self.fixed, self.stage.layers)
            return list(fit_freely(self.ranking, costs.within_target()))
        except OutOfReach as error:
            raise costs.out_of_reach(error.lowest) from None

    def mask(self, kept: Sequence[Kept | None]) -> Mask:
        """Return the mask. A search for evenly spaced layers decides which of them to remove."""
        from tombola.masks.fitting import mask_of

        if getattr(self.stage.search, "keep", None) == "even":
            gone = sum(layer is None for layer in kept)
            choose = searches[self.stage.search.method].choose
            return choose(self.stage.search, self.scores, {"layer": gone}, "global", None)
        return mask_of(self.scores, kept)

    def model(self, kept: Sequence[Kept | None]) -> PreTrainedModel:
        """Return a model of the chosen geometry for timing; it does not matter which units it has."""
        from tombola.shrink.latency import of_geometry

        return of_geometry(self.origin, kept)
