"""Write the finished model as ONNX, so that it is evaluated, attacked and timed as it will be served."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.errors import TombolaError
from tombola.masks.names import is_structured
from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.store.manifest import MANIFEST
from tombola.store.stage import Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.tasks import Task

EXPORTED = "exported.json"


class Exported(StageResult):
    """The file's size in bytes, and the largest difference of a float32 output from PyTorch's."""

    bytes: int
    max_difference: float


@dataclass(frozen=True, eq=False, kw_only=True)
class OnnxStage(ModelStage[Exported]):
    """A stage that writes a model as ONNX, with its config and tokenizer."""

    graph: ClassVar[str]
    """The name of the ONNX file. If the weights are too large for it, their file has this name plus a suffix."""

    def load(self, space: Workspace, task: Task, epoch: int | None = None) -> Any:
        """Load the model, to be run by onnxruntime."""
        from tombola.shrink.onnx_model import OnnxModel

        if epoch is not None:
            raise TombolaError(
                "attack.every_epoch: needs runtime: transformers; only the last model is exported"
            )
        return OnnxModel(self.file(space))

    def file(self, space: Workspace) -> Path:
        """Return the ONNX file of the finished stage."""
        return space.open(self) / self.graph

    def read(self, folder: Path) -> Exported:
        """Read the size of the files, and how far the model is from PyTorch's."""
        return Exported.load(folder / EXPORTED)

    def describe(self, space: Workspace, max_difference: float) -> None:
        """Write a description of the exported model, with the size of its files."""
        size = sum(file.stat().st_size for file in space.folder.glob(f"{self.graph}*"))
        space.write_json(EXPORTED, Exported(bytes=size, max_difference=max_difference))


@dataclass(frozen=True, eq=False, kw_only=True)
class ExportStage(OnnxStage):
    """A model as ONNX, in float32."""

    kind: ClassVar = "export"
    version: ClassVar = 3
    overhead: ClassVar = 8.0
    graph: ClassVar = "model.onnx"

    model: ModelStage[Any] | ModelSource
    """The finished model, or a pre-trained one, which gets a new head."""
    mask: MaskStage | None = None
    """A mask that was not cut out yet: structured units are cut out, single weights become zeros."""
    data: DataSource | None = None
    """Data of the task that the new head is for."""
    seed: int = 0
    """The seed of the new head."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return f"export {self._model_noun} to ONNX"

    @property
    def noun(self) -> str:
        """The model and its format."""
        return f"{self._model_noun} in ONNX"

    @property
    def _model_noun(self) -> str:
        if self.mask is not None:
            return "the ticket"
        return self.model.noun if isinstance(self.model, ModelStage) else "the model"

    def run(self, space: Workspace) -> None:
        """Write the model as ONNX, with its config and tokenizer."""
        from tombola.foundations.quiet import quiet
        from tombola.models.loading import gives_token_types
        from tombola.shrink.onnx_writing import write_onnx

        with self.finished(space) as (model, tokenizer):
            file = space.folder / self.graph
            written = write_onnx(model, file, token_types=gives_token_types(tokenizer))
        with quiet():
            model.config.save_pretrained(space.folder)
            tokenizer.save_pretrained(space.folder)
        self.describe(space, written.max_difference)

    @contextmanager
    def finished(self, space: Workspace) -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerBase]]:
        """Yield the model to export, in eval mode and 32 bits, and its tokenizer."""
        from tombola.evaluation.predict import evaluating
        from tombola.shrink import shrink
        from tombola.tasks import Collate

        model, tokenizer = self._load(space)
        if self.mask is not None:
            mask = self.mask.load(space)
            mask.apply(model)
            if is_structured(mask.units.granularity):
                model = shrink(model, mask)
        with evaluating(model, Collate(tokenizer).pad_id):
            yield model.float().cpu(), tokenizer

    def _load(self, space: Workspace) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        from tombola.models.loading import load_tokenizer, open_model

        if isinstance(self.model, ModelSource):
            assert self.data is not None, "a new head is for a task"
            return self.model.load(self.data.definition, self.seed), self.model.tokenizer()
        folder = space.open(self.model)
        return open_model(folder), load_tokenizer(folder)


@dataclass(frozen=True, eq=False, kw_only=True)
class Quantise(OnnxStage):
    """An exported model with 8-bit weights."""

    kind: ClassVar = "quantise"
    version: ClassVar = 3
    overhead: ClassVar = 5.0
    graph: ClassVar = "model.int8.onnx"

    exported: ExportStage

    @property
    def label(self) -> str:
        """The description of the stage."""
        return f"quantise {self.exported.noun} to int8"

    @property
    def noun(self) -> str:
        """The model and its format."""
        return f"{self.exported.noun} int8"

    def run(self, space: Workspace) -> None:
        """Write the quantised model, with copies of the config and the tokenizer."""
        from tombola.models.loading import gives_token_types
        from tombola.shrink.onnx_writing import quantise_onnx

        source = self.exported.file(space)
        others = shutil.ignore_patterns(f"{self.exported.graph}*", EXPORTED, MANIFEST)
        shutil.copytree(source.parent, space.folder, ignore=others, dirs_exist_ok=True)
        with self.exported.finished(space) as (model, tokenizer):
            quantise_onnx(model, space.folder / self.graph, token_types=gives_token_types(tokenizer))
        self.describe(space, space.read(self.exported).max_difference)
