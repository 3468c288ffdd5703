"""Load masks from files into the store, and combine them if there are several."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from pathlib import Path
from typing import ClassVar, Literal

from tombola.errors import TombolaError
from tombola.pipeline.references import DataSource, FileSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, UsesFamily
from tombola.store.stage import Workspace

Combine = Literal["union", "intersection"]
Base = Literal["same", "any"]


def find_mask(source: str) -> FileSource:
    """Find a mask file, or the mask in a ticket's folder."""
    from tombola.masks import MASK

    path = Path(source).expanduser()
    path = path / MASK if path.is_dir() else path
    if not path.is_file():
        raise TombolaError(f"there is no mask at {path}: use a ticket's folder or a {MASK} file")
    return FileSource.find(path, "search.masks")


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenStage(UsesFamily, MaskStage):
    """A mask that was made elsewhere."""

    kind: ClassVar = "given"
    version: ClassVar = 2

    model: ModelSource
    data: DataSource
    masks: tuple[FileSource, ...]
    combine: Combine
    base: Base = "same"
    """Whether a mask may have been drawn from other weights of the same geometry."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "load the mask"

    def run(self, space: Workspace) -> None:
        """Load, check, combine and describe the masks."""
        from tombola.masks import Mask, fingerprint

        origin = self.model.load(self.data.definition, seed=0)
        base = fingerprint(origin)
        masks = [Mask.load(file.unchanged()) for file in self.masks]
        if self.base == "any":
            masks = [mask.on(base) for mask in masks]
        for mask in masks:
            mask.check(origin, base)
        combined = reduce(and_ if self.combine == "intersection" else or_, masks)
        self.save(space, combined, origin.num_parameters())
