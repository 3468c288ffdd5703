"""Measure the latency of a model's layers, depending on the heads and neurons that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.pipeline.stages.base import UsesFamily
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from tombola.shrink.latency import LatencyTable
    from tombola.shrink.texts import Texts

LATENCY = "latency.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class Latency(UsesFamily, Stage["LatencyTable"]):
    """The latency table of one geometry on one machine."""

    kind: ClassVar = "latency"
    version: ClassVar = 1
    overhead: ClassVar = 25.0

    geometry: str
    """The sizes of the model, which determine its speed, unlike its weights."""
    processor: str
    """The processor or accelerator of the measurement."""
    batch_sizes: tuple[int, ...]
    threads: int
    multiple: int
    length: int | None = None
    """Tokens per text, if they are random."""
    max_length: int | None = None
    """The length to truncate the task's texts to."""
    model: ModelSource
    data: DataSource | None = None
    """The texts to time on."""
    task: DataSource
    """Data of the task whose head the model gets."""
    fewer_heads: bool = True
    """Whether the draw may leave layers fewer heads."""
    fewer_neurons: bool = True
    """Whether the draw may leave layers fewer neurons."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "measure latencies"

    def identity(self) -> dict[str, Any]:
        """Leave out the model's weights and the task's examples: only the geometry and the timed texts matter."""
        identity = super().identity()
        refs = {name: value for name, value in identity["refs"].items() if name not in ("model", "task")}
        return {**identity, "refs": refs}

    def run(self, space: Workspace) -> None:
        """Time a few geometries in turns with the whole model."""
        from tombola.shrink.latency import measure_latency

        model = self.model.load(self.task.definition, seed=0)
        table = measure_latency(
            model,
            self.texts(model.config),
            self.batch_sizes,
            self.threads,
            self.multiple,
            fewer_heads=self.fewer_heads,
            fewer_neurons=self.fewer_neurons,
            progress=lambda done, steps: space.progress(done, steps, {}),
        )
        space.write_json(LATENCY, table)

    def texts(self, config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase | None = None) -> Texts:
        """Return the texts to time models on, with the model's own tokenizer or another."""
        from tombola.shrink.texts import LENGTH, RandomTokens, TaskTexts

        if self.data is None or self.max_length is None:
            return RandomTokens.fitting(config, self.length or LENGTH)
        return TaskTexts.of(self.data.load(), tokenizer or self.model.tokenizer(), self.max_length, config)

    def read(self, folder: Path) -> LatencyTable:
        """Read the table."""
        from tombola.shrink.latency import LatencyTable

        return LatencyTable.model_validate_json((folder / LATENCY).read_bytes())
