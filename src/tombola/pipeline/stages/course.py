"""Scores during training, and the choice of the step whose model is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tombola.errors import DamagedArtefact
from tombola.evaluation.scores import Score
from tombola.foundations.checksums import is_intact, sealed, write_checksums, write_whole
from tombola.foundations.hardware import Precision
from tombola.foundations.quiet import quiet
from tombola.pipeline.stages.base import StageResult
from tombola.tasks import Split
from tombola.tasks.metrics import merit

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tombola.training.course import Evaluation

COURSE = "course.json"
Every = int | Literal["epoch"]


class ScoredStep(StageResult):
    """The scores of the model after a step.

    Attributes:
        step: Optimizer steps taken.
        epoch: The same in epochs.
        scores: By metric, for each watched data set.
        choice: The score that decides the choice of a step; None if the last one is kept.
    """

    step: int
    epoch: float
    scores: list[dict[str, Score]]
    choice: Score | None = None


class ScoreCourse(StageResult):
    """The scores of a training in the order of steps, and the step whose model was kept, if it was chosen."""

    points: list[ScoredStep]
    chosen: int | None = None


@dataclass(frozen=True)
class Scorekeeper:
    """Scores a model during training, and keeps the best one. Its files survive a kill.

    Attributes:
        folder: The folder for its files during training.
        watched: The data for score curves.
        choose: The data whose headline score decides which model is kept; None keeps the last.
        steps_per_epoch: Optimizer steps per epoch.
    """

    folder: Path
    tokenizer: PreTrainedTokenizerBase
    watched: Sequence[Split]
    choose: Split | None
    max_length: int
    precision: Precision
    steps_per_epoch: int

    @property
    def best(self) -> Path:
        """The folder of the best model so far."""
        return self.folder / "best"

    def evaluation(self, every: Every) -> Evaluation:
        """Return the callback of the training, after each epoch or every given number of steps."""
        from tombola.training.course import Evaluation

        return Evaluation(self.score, every)

    def score(self, step: int, model: PreTrainedModel) -> None:
        """Score the model, and keep it if it is the best so far."""
        watched = [self._scores(model, split) for split in self.watched]
        choice = next(iter(self._scores(model, self.choose).values())) if self.choose is not None else None
        others = [self._merit(point.choice) for point in self.points() if point.choice and point.step != step]
        if choice is not None and self._merit(choice) > max(others, default=float("-inf")):
            self._keep(model)
        point = ScoredStep(step=step, epoch=step / self.steps_per_epoch, scores=watched, choice=choice)
        write_whole(self.folder / f"{step}.json", sealed({"point": point.model_dump(mode="json")}))

    def points(self) -> list[ScoredStep]:
        """Return every step scored so far, in order."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = sorted(self.folder.glob("*.json"), key=lambda path: int(path.stem))
        return [self._point(file) for file in files]

    def _point(self, file: Path) -> ScoredStep:
        content = file.read_bytes()
        if not is_intact(content, required=True):
            raise DamagedArtefact(
                f"{file} was damaged; delete {self.folder.parent} and run the same command again to train from the "
                "start"
            )
        return ScoredStep.model_validate(json.loads(content)["point"])

    def close(self, last: int, model: PreTrainedModel) -> ScoreCourse:
        """Return all scores, including those of the last step; the earliest of equal scores is the best."""
        if last not in [point.step for point in self.points()]:
            self.score(last, model)
        points = self.points()
        if self.choose is None:
            return ScoreCourse(points=points)
        chosen = [
            (self._merit(point.choice), -point.step, point) for point in points if point.choice is not None
        ]
        *_, best = max(chosen, key=lambda entry: entry[:2])
        return ScoreCourse(points=points, chosen=best.step)

    def _merit(self, score: Score) -> float:
        """Return the value by which steps are compared."""
        assert self.choose is not None
        return merit(score.value, self.choose.task.headline)

    def _keep(self, model: PreTrainedModel) -> None:
        new = self.folder / "new"
        shutil.rmtree(new, ignore_errors=True)
        with quiet():
            model.save_pretrained(new)
        write_checksums(new)
        shutil.rmtree(self.best, ignore_errors=True)
        new.rename(self.best)

    def _scores(self, model: PreTrainedModel, split: Split) -> dict[str, Score]:
        from tombola.evaluation.evaluate import evaluate_split

        return evaluate_split(
            model, self.tokenizer, split, max_length=self.max_length, precision=self.precision
        ).scores
