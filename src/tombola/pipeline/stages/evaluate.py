"""Score a trained model on one data set, and store its predictions for later tests."""

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
from tombola.tasks import kind_of

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

logger = logging.getLogger(__name__)

PREDICTIONS = "predictions.safetensors"
SCORES = "scores.json"


class Evaluated(StageResult):
    """Scores by metric, the headline first, and notes for the reader.

    `constant` is the headline score of the best constant prediction: a model that does not beat it has learned
    nothing. None for tasks without constant predictions.
    """

    scores: dict[str, Score]
    notes: list[str]
    source: str
    constant: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class EvaluateStage(Stage[Evaluated]):
    """Base of all evaluations: the data to score on, and the training data, to note overlaps between them."""

    data: DataSource
    trained: DataSource
    also_trained: tuple[DataSource, ...] = ()
    """Further data that the mask was found on: data mixed in by a search, or another task's."""
    max_length: int
    precision: Precision

    def further_settings(self) -> dict[str, Any]:
        """Return how the task computes its scores, which is not part of the data's fingerprint."""
        task = self.data.definition
        scoring: dict[str, Any] = {"metrics": task.metrics, "groups": task.groups, "merge": task.merge}
        if task.unanswerable:
            scoring["unanswerable"] = True
        if task.settings:
            scoring["settings"] = task.kind_settings.model_dump(mode="json", exclude_defaults=True)
        return {"scoring": scoring}

    def texts_read(self) -> float:
        """Return the number of inputs: each is read once."""
        split = self.data.load()
        inputs = kind_of(self.data.definition).estimate_inputs(split, self.max_length)
        return len(split) if inputs is None else inputs

    def score(self, space: Workspace, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        """Score a model; save the scores, the predictions, and which examples were classified correctly."""
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
        if split.task.single_label:
            right = result.predictions.argmax(axis=1) == np.asarray(split.labels)
            kept["correct"] = torch.from_numpy(right)
        save_file(kept, space.folder / PREDICTIONS)
        notes = list(result.notes)
        leaks = [leakage_note(data.load(), split) for data in (self.trained, *self.also_trained)]
        notes += dict.fromkeys(note for note in leaks if note is not None)
        for note in notes:
            _warn(note)
        constant = constant_score(split)
        evaluated = Evaluated(scores=result.scores, notes=notes, source=split.source, constant=constant)
        space.write_json(SCORES, evaluated)

    def read(self, folder: Path) -> Evaluated:
        """Read the scores with their standard errors."""
        return Evaluated.load(folder / SCORES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluate(EvaluateStage):
    """The scores of one model on one data set."""

    kind: ClassVar = "evaluate"
    version: ClassVar = 2

    model: ModelStage[Any]
    mask: MaskStage | None = None
    """A mask to apply first, if the model was not trained under it."""

    @property
    def label(self) -> str:
        """The model, and the data that it is scored on."""
        noun = self.model.noun if self.mask is None else "the ticket"
        return f"evaluate {noun} on {self.data.definition.name}/{self.data.split}"

    def plugged(self) -> list[Any]:
        """Return the metrics of the task, which a plugin may define."""
        return metrics_of(self.data)

    def run(self, space: Workspace) -> None:
        """Evaluate the model of the input stage, under a mask if one is given."""
        from tombola.models.loading import load_tokenizer

        model = self.model.load(space, self.trained.definition)
        if self.mask is not None:
            self.mask.load(space).apply(model)
        self.score(space, model, load_tokenizer(space.open(self.model)))


def metrics_of(data: DataSource) -> list[Any]:
    """Return the evaluator of a task, and the functions behind its metrics."""
    from tombola.evaluation.evaluators import evaluators
    from tombola.tasks.metrics import metrics

    task = data.definition
    named = [metrics[name] for name in task.metrics]
    return [evaluators[kind_of(task).evaluator], *named, *(metric.function for metric in named)]


def read_correct(folder: Path) -> np.ndarray | None:
    """Return which examples of a finished evaluation were classified correctly; None if predictions are not classes."""
    from safetensors.numpy import load_file

    correct: np.ndarray | None = load_file(folder / PREDICTIONS).get("correct")
    return correct


@cache
def _warn(note: str) -> None:
    """Log a note once, however many models are scored on the same data."""
    logger.warning("%s", note)
