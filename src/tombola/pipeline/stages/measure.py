"""Measure how large and how fast the result is, in turns with the dense model that it was drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.recipe.sections import MeasureSettings
from tombola.shrink.sizes import Sizes
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask

MEASURED = "measured.json"


class Speedup(StageResult):
    """How many times faster than the dense model, timed in turns in one process, with its 95 % interval.

    `busy` says what else used the machine meanwhile, if anything did.
    """

    ratio: float
    low: float
    high: float
    busy: str | None = None


class Measured(StageResult):
    """The sizes of the result (`ticket`) and of the dense model, measured in one process.

    `speedup` is by batch size; empty for a dense model.
    """

    dense: Sizes
    ticket: Sizes
    speedup: dict[int, Speedup] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure(Stage[Measured]):
    """Size and speed of a model, shrunk by its mask."""

    kind: ClassVar = "measure"
    version: ClassVar = 1

    model: ModelStage
    measure: MeasureSettings
    mask: MaskStage | None = None

    @property
    def label(self) -> str:
        """What is done."""
        return "measure size and speed"

    def run(self, space: Workspace) -> None:
        """Shrink a structured ticket and time it in turns with the dense model; pack an unstructured one.

        A model under a mask of single weights is as fast as the dense model, and counts as such.
        """
        from tombola.models.loading import open_model
        from tombola.shrink import shrink
        from tombola.shrink.inputs import longest_input
        from tombola.shrink.measuring import measure
        from tombola.shrink.shrinking import STRUCTURED

        model = open_model(space.open(self.model))
        sizes, length = self.measure.batch_sizes, min(self.measure.length, longest_input(model.config))
        mask = self.mask.load(space) if self.mask else None
        if mask is None:
            (dense,) = measure(model, batch_sizes=sizes, length=length)
            ticket = dense
        elif set(mask.units.granularity.split("+")) <= STRUCTURED:
            mask.apply(model)
            dense, ticket = measure(model, shrink(model, mask), batch_sizes=sizes, length=length)
        else:
            mask.apply(model)
            (dense,) = measure(model, batch_sizes=sizes, length=length)
            ticket = dense.model_copy(update={"bytes": _packed(model, mask, space.scratch)})
        space.write_json(MEASURED, Measured(dense=dense, ticket=ticket))

    def read(self, folder: Path) -> Measured:
        """The sizes."""
        return Measured.load(folder / MEASURED)


def _packed(model: PreTrainedModel, mask: Mask, folder: Path) -> int:
    """Bytes of the packed model on disk."""
    from tombola.shrink.packing import pack

    path = folder / "packed.safetensors"
    pack(model, mask, path)
    return path.stat().st_size
