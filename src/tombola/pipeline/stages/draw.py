"""Draw a mask: score the units of a model and remove the lowest."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage, emptied
from tombola.pipeline.stages.defend import Defend
from tombola.pipeline.stages.score import score_units
from tombola.search import Amount, SearchSettings, searches
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from tombola.masks import Scope

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True)
class Draw(MaskStage):
    """A mask of an exact sparsity. It carries the fingerprint of the pre-trained model, whatever model was scored."""

    kind: ClassVar = "draw"
    version: ClassVar = 2

    model: ModelSource
    data: DataSource
    search: SearchSettings
    sparsity: float | None
    """The share of units that goes; None where `heads` and `ffns` say how many."""
    scope: Scope
    seed: int
    max_length: int | None = None
    """Where texts are cut, for scores that read data."""
    of: ModelStage[Any] | None = None
    """The model whose units are scored; else the pre-trained one."""
    defend: Defend | None = None
    """What corrects the texts first, for scores that read data."""
    within: MaskStage | None = None
    """A mask that the new one stays inside of: what it removed stays removed."""
    scores: ScoreStage | None = None
    """Scores that are there already."""
    heads: int | None = None
    ffns: int | None = None

    @property
    def amount(self) -> Amount:
        """How much is removed: a share of the units, or counts by kind."""
        if self.sparsity is not None:
            return self.sparsity
        return {"head": self.heads or 0, "ffn": self.ffns or 0}

    @property
    def label(self) -> str:
        """How much is removed."""
        if self.sparsity is not None:
            return f"draw {self.sparsity:.0%}"
        return f"draw {self.heads or 0} heads and {self.ffns or 0} FFNs"

    def plugged(self) -> list[Any]:
        """The model's family, which a plugin may describe."""
        return [self.model.family()]

    def run(self, space: Workspace) -> None:
        """Draw the mask and describe it."""
        within = self.within.load(space) if self.within else None
        origin = self.model.load(self.data.definition, self.seed)
        parameters = origin.num_parameters()
        scores = space.read(self.scores) if self.scores else score_units(self, space, origin)
        mask = searches[self.search.method].choose(self.search, scores, self.amount, self.scope, within)
        for name in emptied(mask):
            logger.warning(
                "the mask removes every weight of %s, so no signal passes through it: draw fewer, rank inside each "
                "matrix (draw.scope: local)%s",
                name,
                ", leave it out (search.pooler: false) or renew it (pooler: new)" if "pooler" in name else "",
            )
        self.save(space, mask, parameters)
