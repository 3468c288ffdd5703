"""Write the finished model as ONNX, so that it is evaluated, attacked and timed as it will be served."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.errors import TombolaError
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from tombola.tasks import Task

EXPORTED = "exported.json"


class Exported(StageResult):
    """The file's size in bytes, and the largest difference of a float32 output from PyTorch's."""

    bytes: int
    max_difference: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Export(ModelStage[Exported]):
    """A model as ONNX, in float32 or with 8-bit weights."""

    kind: ClassVar = "export"
    version: ClassVar = 1

    model: ModelStage[Any]
    int8: bool
    mask: MaskStage | None = None
    """A mask whose units are still in the model: structured ones are cut out, others stay as zeros."""

    @property
    def label(self) -> str:
        """What is written."""
        return "export to ONNX int8" if self.int8 else "export to ONNX"

    def run(self, space: Workspace) -> None:
        """Write the graph beside the config and the tokenizer."""
        from tombola.evaluation.predict import evaluating
        from tombola.foundations.quiet import quiet
        from tombola.models.loading import load_tokenizer, open_model
        from tombola.shrink import shrink
        from tombola.shrink.onnx import write_onnx
        from tombola.shrink.onnx_model import MODEL
        from tombola.shrink.shape import STRUCTURED

        model, tokenizer = open_model(space.open(self.model)), load_tokenizer(space.open(self.model))
        if self.mask is not None:
            mask = self.mask.load(space)
            mask.apply(model)
            if set(mask.units.granularity.split("+")) <= STRUCTURED:
                model = shrink(model, mask)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        draft = space.scratch / MODEL
        with evaluating(model, pad):
            written = write_onnx(model.float().cpu(), draft, self.int8)
        kept = written.int8 or draft
        for file in kept.parent.glob(f"{kept.name}*"):
            shutil.move(file, space.folder / file.name.replace(kept.name, MODEL, 1))
        with quiet():
            model.config.save_pretrained(space.folder)
            tokenizer.save_pretrained(space.folder)
        size = sum(file.stat().st_size for file in space.folder.glob(f"{MODEL}*"))
        space.write_json(EXPORTED, Exported(bytes=size, max_difference=written.max_difference))

    def load(self, space: Workspace, task: Task, epoch: int | None = None) -> Any:
        """The model as onnxruntime runs it."""
        from tombola.shrink.onnx_model import MODEL, OnnxModel

        if epoch is not None:
            raise TombolaError(
                "attack.every_epoch: is for runtime: transformers; the exported model is the last one"
            )
        return OnnxModel(space.open(self) / MODEL)

    def read(self, folder: Path) -> Exported:
        """What was written."""
        return Exported.load(folder / EXPORTED)
