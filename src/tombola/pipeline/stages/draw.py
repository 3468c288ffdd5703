"""Draw a mask: score the units of a model and remove the lowest."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage, UsesFamily, emptied
from tombola.pipeline.stages.defend import Defend
from tombola.pipeline.stages.prune import Prune, prune_model
from tombola.pipeline.stages.score import BATCH, score_units
from tombola.search import Amount, SearchSettings, searches
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask, Scope

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True)
class Draw(UsesFamily, MaskStage):
    """A mask of an exact sparsity. It has the fingerprint of the pre-trained model, whatever model was scored."""

    kind: ClassVar = "draw"
    version: ClassVar = 3

    model: ModelSource
    data: DataSource
    search: SearchSettings
    sparsity: float | None
    """The share of units to remove; None if `heads` and `ffns` give their numbers."""
    scope: Scope
    seed: int
    max_length: int | None = None
    """The length to truncate texts to, for scores that read data."""
    of: ModelStage[Any] | None = None
    """The model whose units are scored; by default the pre-trained one."""
    defend: Defend | None = None
    """The defense that corrects the texts first, for scores that read data."""
    within: MaskStage | None = None
    """A mask whose removed units stay removed."""
    scores: ScoreStage | None = None
    """Existing scores to draw from."""
    heads: int | None = None
    ffns: int | None = None
    pattern: str | None = None
    """The pattern of every matrix: `2:4`, `16x16`."""
    pruned: Prune | None = None
    """A pruned model whose mask to take."""

    @property
    def amount(self) -> Amount:
        """The amount to remove: a share of the units, or counts by kind."""
        if self.sparsity is not None:
            return self.sparsity
        return {"head": self.heads or 0, "ffn": self.ffns or 0}

    @property
    def label(self) -> str:
        """The amount to remove."""
        if self.pattern is not None:
            return f"draw {self.pattern}"
        if self.sparsity is not None:
            return f"draw {self.sparsity:.0%}"
        return f"draw {self.heads or 0} heads and {self.ffns or 0} FFNs"

    def texts_read(self) -> float | None:
        """Return about how many texts the draw's own scores read; None if unknown."""
        if self.scores or self.pruned:
            return 0.0
        return self.search.texts_read(len(self.data.load()), BATCH)

    def run(self, space: Workspace) -> None:
        """Draw the mask and describe it."""
        origin = self.model.load(self.data.definition, self.seed)
        parameters = origin.num_parameters()
        mask = self._mask(space, origin)
        for name in emptied(mask):
            logger.warning(
                "the mask removes every weight of %s, so no signal passes through it: remove fewer, rank within each "
                "matrix (draw.scope: local)%s",
                name,
                ", exclude it (search.pooler: false) or reinitialise it (pooler: new)"
                if "pooler" in name
                else "",
            )
        self.save(space, mask, parameters)

    def _mask(self, space: Workspace, origin: PreTrainedModel) -> Mask:
        from tombola.masks import draw

        if self.pruned is not None:
            return space.read(self.pruned)
        if self.search.layerwise:
            return prune_model(self, space, origin)[1]
        within = self.within.load(space) if self.within else None
        scores = space.read(self.scores) if self.scores else score_units(self, space, origin)
        if self.pattern is not None:
            return draw(scores, self.sparsity, scope=self.scope, within=within, pattern=self.pattern)
        return searches[self.search.method].choose(self.search, scores, self.amount, self.scope, within)
