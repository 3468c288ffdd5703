"""Cut a structured ticket out of a model; the result is a small model that is trained like any other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult, UsesFamily, cut_of
from tombola.recipe.drawing import Layout
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CUT = "cut.json"


class CutOut(StageResult):
    """How a small model was cut out, and the config of its dense model.

    Attributes:
        layout: Whether a plain config describes the small model (uniform) or only Tombola can load it (free).
        parameters: Parameters of the small model.
        dense_parameters: Parameters of the dense model.
        dense: The dense model's config, to build a model of its size for comparisons.
    """

    layout: Layout
    parameters: int
    dense_parameters: int
    dense: dict[str, Any]


@dataclass(frozen=True, eq=False, kw_only=True)
class Shrink(UsesFamily, ModelStage[CutOut]):
    """A small model: in an ordinary folder if the layout is uniform, otherwise in one that only Tombola loads."""

    kind: ClassVar = "shrink"
    version: ClassVar = 2

    model: ModelSource
    data: DataSource
    """Data of the task that the model's head is for."""
    mask: MaskStage
    layout: Layout
    seed: int
    """The seed of the head, if the pre-trained model is cut."""
    of: ModelStage[Any] | None = None
    """The model to cut; by default the pre-trained one."""
    within: MaskStage | None = None
    """The mask that cut out `of`, if that is a small model already."""
    multiple: int = 8

    @property
    def noun(self) -> str:
        """The model that is cut out."""
        return "the small model"

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "cut out the small model"

    def run(self, space: Workspace) -> None:
        """Cut out the small model, and save it."""
        from tombola.shrink import shrink
        from tombola.shrink.uniform import shrink_uniformly

        task = self.data.definition
        larger = self.of.load(space, task) if self.of else self.model.load(task, self.seed)
        dense = self.load_dense(space)
        mask = self._own_mask(space, larger)
        cutter = shrink_uniformly if self.layout == "uniform" else shrink
        small = cutter(larger, mask, self.multiple)
        self.save(space, small, self.model.tokenizer())
        found = CutOut(
            layout=self.layout,
            parameters=small.num_parameters(),
            dense_parameters=dense.num_parameters(),
            dense={**dense.config.to_diff_dict(), "architectures": [type(dense).__name__]},
        )
        space.write_json(CUT, found)

    def _own_mask(self, space: Workspace, larger: PreTrainedModel) -> Any:
        """Return the mask in terms of the model that is cut."""
        from tombola.masks import Units
        from tombola.masks.nesting import layers_left, lower

        mask = self.mask.load(space)
        if self.within is None:
            return mask
        outer = self.within.load(space)
        layers = layers_left(outer) if self.layout == "uniform" else list(outer.units.layout.layers())
        return lower(mask, outer, Units.of(larger, mask.units.granularity), layers)

    def load_dense(self, space: Workspace) -> PreTrainedModel:
        """Load the dense model that the small one was ultimately cut from."""
        task, first = self.data.definition, self.first()
        return first.of.load(space, task) if first.of else first.model.load(task, first.seed)

    def first(self) -> Shrink:
        """Return the cut of the dense model: this one, unless it cuts a model that is small already."""
        before = cut_of(self.of)
        return before.first() if isinstance(before, Shrink) else self

    def read(self, folder: Path) -> CutOut:
        """Read how the model was cut out."""
        return CutOut.load(folder / CUT)
