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
    """A stage that leaves a graph beside the config and the tokenizer of its model."""

    graph: ClassVar[str]
    """The name of its file; where the weights have one of their own, that begins alike."""

    def load(self, space: Workspace, task: Task, epoch: int | None = None) -> Any:
        """The model as onnxruntime runs it."""
        from tombola.shrink.onnx_model import OnnxModel

        if epoch is not None:
            raise TombolaError(
                "attack.every_epoch: needs runtime: transformers; only the last model is exported"
            )
        return OnnxModel(self.file(space))

    def file(self, space: Workspace) -> Path:
        """The graph of the finished stage."""
        return space.open(self) / self.graph

    def read(self, folder: Path) -> Exported:
        """What was written."""
        return Exported.load(folder / EXPORTED)

    def describe(self, space: Workspace, max_difference: float) -> None:
        """Note how large the files are that were written."""
        size = sum(file.stat().st_size for file in space.folder.glob(f"{self.graph}*"))
        space.write_json(EXPORTED, Exported(bytes=size, max_difference=max_difference))


@dataclass(frozen=True, eq=False, kw_only=True)
class Export(OnnxStage):
    """A model as ONNX, in float32."""

    kind: ClassVar = "export"
    version: ClassVar = 3
    graph: ClassVar = "model.onnx"

    model: ModelStage[Any] | ModelSource
    """The finished model, or a pre-trained one with a new head."""
    mask: MaskStage | None = None
    """A mask whose units are still in the model: structured ones are cut out, others stay as zeros."""
    data: DataSource | None = None
    """Data of the task whose head a pre-trained model gets."""
    seed: int = 0
    """Of that head."""

    @property
    def label(self) -> str:
        """What is written."""
        return "export to ONNX"

    def run(self, space: Workspace) -> None:
        """Write the graph beside the config and the tokenizer."""
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
        """Give the model that is exported, in eval mode and 32 bits, and its tokenizer."""
        from tombola.evaluation.predict import evaluating
        from tombola.shrink import shrink

        model, tokenizer = self._load(space)
        if self.mask is not None:
            mask = self.mask.load(space)
            mask.apply(model)
            if is_structured(mask.units.granularity):
                model = shrink(model, mask)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        with evaluating(model, pad):
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
    graph: ClassVar = "model.int8.onnx"

    exported: Export

    @property
    def label(self) -> str:
        """What is written."""
        return "quantise to ONNX int8"

    def run(self, space: Workspace) -> None:
        """Write the graph beside copies of the config and the tokenizer."""
        from tombola.models.loading import gives_token_types
        from tombola.shrink.onnx_writing import quantise_onnx

        source = self.exported.file(space)
        others = shutil.ignore_patterns(f"{self.exported.graph}*", EXPORTED, MANIFEST)
        shutil.copytree(source.parent, space.folder, ignore=others, dirs_exist_ok=True)
        with self.exported.finished(space) as (model, tokenizer):
            quantise_onnx(model, space.folder / self.graph, token_types=gives_token_types(tokenizer))
        self.describe(space, space.read(self.exported).max_difference)
