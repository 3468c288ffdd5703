"""Swap a share of a mask's kept units with removed ones: a control for how exact the mask must be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tombola.pipeline.stages.base import MaskStage
from tombola.store.stage import Workspace


@dataclass(frozen=True, eq=False, kw_only=True)
class Perturb(MaskStage):
    """A mask of equal sparsity that differs from another in a share of its units."""

    kind: ClassVar = "perturb"
    version: ClassVar = 4

    mask: MaskStage
    share: float
    seed: int

    @property
    def label(self) -> str:
        """The share of units to swap."""
        return f"perturb {self.share:.0%}"

    def run(self, space: Workspace) -> None:
        """Perturb the input's mask."""
        from tombola.masks.perturb import perturb

        mask = perturb(self.mask.load(space), self.share, self.seed)
        self.save(space, mask, space.read(self.mask).parameters)
