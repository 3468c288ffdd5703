"""Learn scores of gates on the task, and optionally the weights under them; masks are drawn from the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tombola.pipeline.stages.base import LOG, SCORES, ModelStage, ScoreStage, UsesFamily
from tombola.pipeline.stages.defend import tokenizer_of
from tombola.pipeline.stages.learning import (
    LearningStage,
    attackable_columns,
    distilling_teacher,
    planned_steps,
    training_collate,
    training_data,
)
from tombola.pipeline.stages.score import read_batches
from tombola.search.learned import IMPORTANCE_BATCHES, Learned
from tombola.store.stage import Workspace
from tombola.training.settings import TrainSettings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks import Scope, Scores, Units


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchStage(UsesFamily, ScoreStage, LearningStage["Scores"]):
    """A search by gradient descent on gates. With `search.weights`, it also produces a model folder."""

    kind: ClassVar = "search"
    version: ClassVar = 8

    search: Learned
    start: ModelStage[Any] | None = None
    """The weights under the gates; by default the pre-trained ones."""
    sparsity: float | None = None
    """The sparsity, if the effective budget depends on it."""
    scope: Scope | None = None
    pattern: str | None = None
    """The pattern of the open gates, if the budget depends on the sparsity."""

    @property
    def label(self) -> str:
        """The description of the stage."""
        return "search"

    @property
    def train(self) -> TrainSettings:
        """The training settings of the scores."""
        return self.search.train

    def further_settings(self) -> dict[str, Any]:
        """Return the columns that an attack in the loop may change."""
        return attackable_columns(self)

    def training_steps(self) -> int:
        """Return the optimizer steps of this search."""
        return planned_steps(self.train, self.data, self.search.stops_at)

    def run(self, space: Workspace) -> None:
        """Train the gates, and save their scores with the pre-trained model's fingerprint.

        Weights that were trained too are saved times their gates without noise, so that a ticket computes what the
        search trained.
        """
        from tombola.gates import Gating
        from tombola.masks import fingerprint
        from tombola.models.heads import copy_base, copy_head
        from tombola.training.gated import train_gates

        task, rate = self.data.definition, self.search.weights_learning_rate
        assert (rate is not None) is self.search.weights, "filled in from train.learning_rate"
        model = self.model.load(task, self.seed)
        base = fingerprint(model)
        if self.start is not None:
            start = self.start.load(space, task)
            copy_base(start, model)
            copy_head(start, model)
        units = self.search.units_of(model, base)
        gating = Gating(
            units,
            model,
            self.search.gate,
            self.search.effective_budget,
            seed=self.seed,
            sparsity=self.sparsity or 0.0,
            scope=self.scope or "global",
            pattern=self.pattern,
            importance=self._importance(space, model, units) if self.search.init else None,
        )
        log = train_gates(
            model,
            training_data(self, space, model),
            self.train,
            gating,
            collate=training_collate(self),
            seed=self.seed,
            precision=self.precision,
            folder=space.scratch,
            sample=self.search.sample,
            weights_learning_rate=rate,
            teacher=distilling_teacher(self, space),
            stop_at=self.search.stops_at,
            progress=space.progress,
        )
        if self.search.weights:
            gating.fold(model)
            self.save(space, model, tokenizer_of(self.model, self.defend, space))
        gating.learned().save(space.folder / SCORES)
        space.write_json(LOG, log)

    def _importance(self, space: Workspace, model: PreTrainedModel, units: Units) -> Scores:
        """Return the Taylor importance of the units before the search, on its own data."""
        from tombola.masks import Scores
        from tombola.search.criteria import unit_scores

        batches = read_batches(self, space, model, self.train.max_length, IMPORTANCE_BATCHES)
        return Scores(units, unit_scores("taylor", model, units, batches))
