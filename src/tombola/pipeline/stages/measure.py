"""Measure the size and speed of the result, in turns with the dense model that it was drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.foundations.hardware.threads import using_threads
from tombola.masks.names import is_structured
from tombola.pipeline.references import DataSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.pipeline.stages.export import ExportStage, OnnxStage
from tombola.pipeline.stages.shrink import Shrink
from tombola.recipe.sections import MeasureSettings
from tombola.shrink.sizes import Sizes, Speedup
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Mask
    from tombola.shrink.texts import Texts

MEASURED = "measured.json"


class Measured(StageResult):
    """The sizes of the result (`ticket`) and of the dense model, and the speed-up of the result.

    All values are from one session of one process. `speedup` is by batch size; it is empty for a dense model, and for
    a mask of single weights, which does not make a model faster. For an exported model it is the speed-up over the
    dense model in PyTorch, and `onnx_speedup` that over the dense model in 32-bit ONNX.
    """

    dense: Sizes
    ticket: Sizes
    speedup: dict[int, Speedup] = {}
    onnx_speedup: dict[int, Speedup] = {}


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure(Stage[Measured]):
    """Size and speed of a model, shrunk by its mask."""

    kind: ClassVar = "measure"
    version: ClassVar = 3
    overhead: ClassVar = 20.0

    model: ModelStage[Any]
    measure: MeasureSettings
    mask: MaskStage | None = None
    data: DataSource | None = None
    """The texts to time on; None for random tokens, if the settings fix a length."""
    max_length: int | None = None
    """The length to truncate texts to."""
    cut: Shrink | None = None
    """The stage that cut out the model, if it is already small; it leads to the dense model."""
    exported: OnnxStage | None = None
    """The model as ONNX, if that is timed."""
    reference: ExportStage | None = None
    """The dense model as ONNX, to compare an exported model with."""
    processor: str | None = None
    """The processor or accelerator of the measurement: its times hold for no other."""
    threads: int | None = None
    """The threads that the recipe sets, else those of the process that planned the measurement."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        measured = self.exported or self.model
        return f"measure size and speed of {measured.noun if self.mask is None else 'the ticket'}"

    def run(self, space: Workspace) -> None:
        """Shrink a structured ticket and time it in turns with the dense model; pack an unstructured one."""
        with using_threads(self.measure.threads):
            self._measure(space)

    def _measure(self, space: Workspace) -> None:
        from tombola.models.loading import open_model
        from tombola.shrink import shrink
        from tombola.shrink.measuring import measure

        model = open_model(space.open(self.model))
        mask = self.mask.load(space) if self.mask else None
        if mask is not None:
            mask.apply(model)
        structured = mask is not None and is_structured(mask.units.granularity)
        models = [model, shrink(model, mask)] if mask is not None and structured else [model]
        if self.cut is not None:
            models = [self.cut.load_dense(space), model]
        if self.exported is not None:
            self._measure_exported(space, models[0], models[-1])
            return
        measurement = measure(*models, batch_sizes=self.measure.batch_sizes, texts=self._texts(space, model))
        dense, ticket = measurement.sizes[0], measurement.sizes[-1]
        if mask is not None and not structured:
            ticket = dense.model_copy(update={"bytes": _packed(model, mask, space.scratch)})
        speedup = measurement.speedups[0] if len(models) > 1 else {}
        space.write_json(MEASURED, Measured(dense=dense, ticket=ticket, speedup=speedup))

    def _measure_exported(self, space: Workspace, dense: PreTrainedModel, small: PreTrainedModel) -> None:
        """Time the exported model in turns with the dense one in PyTorch and in ONNX."""
        from tombola.shrink.measuring import measure_exported

        exported, reference = self.exported, self.reference
        assert exported is not None
        assert reference is not None, "an exported model is compared with an exported dense model"
        files = reference.file(space), exported.file(space)
        measurement = measure_exported(
            dense, small, *files, self.measure.batch_sizes, self._texts(space, dense)
        )
        ticket = measurement.sizes[1].model_copy(update={"bytes": space.read(exported).bytes})
        measured = Measured(
            dense=measurement.sizes[0],
            ticket=ticket,
            speedup=measurement.speedups[0],
            onnx_speedup=measurement.speedups[1],
        )
        space.write_json(MEASURED, measured)

    def _texts(self, space: Workspace, model: PreTrainedModel) -> Texts:
        from tombola.models.loading import load_tokenizer
        from tombola.shrink.texts import RandomTokens, TaskTexts

        if self.data is None or self.max_length is None:
            assert self.measure.length is not None, "without data, the settings have a length"
            return RandomTokens.fitting(model.config, self.measure.length)
        tokenizer = load_tokenizer(space.open(self.model))
        return TaskTexts.of(self.data.load(), tokenizer, self.max_length, model.config)

    def read(self, folder: Path) -> Measured:
        """Read the sizes and speed-ups."""
        return Measured.load(folder / MEASURED)


def exported_dense(model: ModelStage[Any], cut: Shrink | None) -> ExportStage:
    """Return the export of the dense model behind a model: the model itself, unless it was cut out of a larger one."""
    if cut is None:
        return ExportStage(model=model)
    first = cut.first()
    if first.of is not None:
        return ExportStage(model=first.of)
    return ExportStage(model=first.model, data=first.data, seed=first.seed)


def _packed(model: PreTrainedModel, mask: Mask, folder: Path) -> int:
    """Return the size of the packed model on disk, in bytes."""
    from tombola.shrink.packing import pack

    path = folder / "packed.safetensors"
    pack(model, mask, path)
    return path.stat().st_size
