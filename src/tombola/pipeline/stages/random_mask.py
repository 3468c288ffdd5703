"""Draw a random mask of another mask's size: a control for the choice of its units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tombola.foundations.seeds import numbered_seed
from tombola.pipeline.stages.base import MaskStage
from tombola.store.stage import Workspace


@dataclass(frozen=True, eq=False, kw_only=True)
class RandomMask(MaskStage):
    """A mask that removes as many units of each kind as another, at random."""

    kind: ClassVar = "random_mask"
    version: ClassVar = 1

    mask: MaskStage
    seed: int
    number: int = 0
    """The index of the random mask within the run."""
    min_heads: int | None = None
    """The heads that each layer keeps; by default one, if the other mask keeps a head in each layer."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "draw a random mask of the same size"

    def run(self, space: Workspace) -> None:
        """Draw the mask and describe it."""
        from tombola.masks.drawing import random_like

        seed = numbered_seed(self.seed, self.number)
        mask = random_like(self.mask.load(space), seed, min_heads=self.min_heads)
        self.save(space, mask, space.read(self.mask).parameters)
