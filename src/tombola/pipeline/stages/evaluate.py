"""Score a trained model on one data set, and keep its predictions so that later questions need no second pass."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.evaluation.scores import Score
from tombola.foundations.hardware import Precision
from tombola.pipeline.references import DataSource
from tombola.pipeline.stages.base import MaskStage, ModelStage, StageResult
from tombola.store.stage import Stage, Workspace

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

PREDICTIONS = "predictions.safetensors"
SCORES = "scores.json"


class Evaluated(StageResult):
    """Scores by metric, the headline first, and remarks for the reader.

    `constant` is the headline score of the best constant prediction: a model that is not above it has learned
    nothing. None for tasks that have no such thing.
    """

    scores: dict[str, Score]
    notes: list[str]
    source: str
    constant: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluateStage(Stage[Evaluated]):
    """What every evaluation has: data to score on, and the training data, which must not overlap with it."""

    data: DataSource
    trained: DataSource
    max_length: int
    precision: Precision

    def score(self, space: Workspace, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Score a model; keep the scores, the predictions, and which examples were classified rightly."""
        import numpy as np
        import torch
        from safetensors.torch import save_file

        from tombola.evaluation.evaluate import constant_score, evaluate_split
        from tombola.evaluation.leakage import leakage_note

        split = self.data.load()
        result = evaluate_split(
            model,
            tokenizer,
            split,
            max_length=self.max_length,
            precision=self.precision,
            progress=space.progress,
        )
        headline = next(iter(result.scores))
        space.progress(len(split), len(split), {headline: result.scores[headline].value})
        kept = {"predictions": torch.from_numpy(np.ascontiguousarray(result.predictions))}
        if split.task.kind == "classification":
            right = result.predictions.argmax(axis=1) == np.asarray(split.labels)
            kept["correct"] = torch.from_numpy(right)
        save_file(kept, space.folder / PREDICTIONS)
        notes = list(result.notes)
        if leak := leakage_note(self.trained.load(), split):
            notes.append(leak)
        for note in notes:
            _warn(note)
        constant = constant_score(split)
        evaluated = Evaluated(scores=result.scores, notes=notes, source=split.source, constant=constant)
        space.write_json(SCORES, evaluated)

    def read(self, folder: Path) -> Evaluated:
        """The scores with their standard errors."""
        return Evaluated.load(folder / SCORES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluate(EvaluateStage):
    """The scores of one model on one data set."""

    kind: ClassVar = "evaluate"
    version: ClassVar = 2

    model: ModelStage
    mask: MaskStage | None = None
    """A mask to apply first, where the model was not trained under it."""

    @property
    def label(self) -> str:
        """What the model is scored on."""
        return f"evaluate on {self.data.task}/{self.data.split}"

    def plugged(self) -> list[Any]:
        """The metrics of the task, which a plugin may define."""
        return metrics_of(self.data)

    def run(self, space: Workspace) -> None:
        """Evaluate the model of the input stage, under a mask if one is given."""
        from tombola.models.loading import load_tokenizer

        model = self.model.load(space, self.trained.definition)
        if self.mask is not None:
            self.mask.load(space).apply(model)
        self.score(space, model, load_tokenizer(space.open(self.model)))


def metrics_of(data: DataSource) -> list[Any]:
    """The functions behind a task's metrics."""
    from tombola.tasks.metrics import metrics

    found = [metrics[name] for name in data.definition.metrics]
    return [*found, *(metric.function for metric in found)]


def read_correct(folder: Path) -> np.ndarray | None:
    """Which examples of a finished evaluation were classified rightly; None where predictions are no classes."""
    from safetensors.numpy import load_file

    return load_file(folder / PREDICTIONS).get("correct")


@cache
def _warn(note: str) -> None:
    """Once, however many models are scored on the same data."""
    logger.warning("%s", note)
