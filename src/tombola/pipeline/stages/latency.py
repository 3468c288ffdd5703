"""Measure what the layers of a model cost in time, by the heads and neurons that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.references import DataSource, ModelSource
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from tombola.shrink.latency import LatencyTable
    from tombola.shrink.texts import Texts

LATENCY = "latency.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class Latency(Stage["LatencyTable"]):
    """The latency table of one geometry on one machine."""

    kind: ClassVar = "latency"
    version: ClassVar = 1

    geometry: str
    """The sizes of the model, which decide on its speed; its weights do not."""
    processor: str
    """The processor, or the accelerator, that the times belong to."""
    batch_sizes: tuple[int, ...]
    threads: int
    multiple: int
    length: int | None = None
    """Tokens of a text, where they are random."""
    max_length: int | None = None
    """Where the task's texts are cut."""
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
        """What is done."""
        return "measure latencies"

    def plugged(self) -> list[Any]:
        """The model's family, which a plugin may describe."""
        return [self.model.family()]

    def identity(self) -> dict[str, Any]:
        """The weights and the examples of the task do not matter: only the geometry, and the texts' lengths."""
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
            progress=lambda done, whole: space.progress(done, whole, {}),
        )
        space.write_json(LATENCY, table)

    def texts(self, config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase | None = None) -> Texts:
        """What models are timed on, with the model's own tokenizer or another."""
        from tombola.shrink.texts import LENGTH, RandomTokens, TaskTexts

        if self.data is None or self.max_length is None:
            return RandomTokens.fitting(config, self.length or LENGTH)
        return TaskTexts.of(self.data.load(), tokenizer or self.model.tokenizer(), self.max_length, config)

    def read(self, folder: Path) -> LatencyTable:
        """The table."""
        from tombola.shrink.latency import LatencyTable

        return LatencyTable.model_validate_json((folder / LATENCY).read_bytes())
