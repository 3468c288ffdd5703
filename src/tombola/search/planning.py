"""The interface between searches and stages: a stage builder, and the result of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage
    from tombola.pipeline.stages.prune import Prune
    from tombola.pipeline.stages.search import SearchStage
    from tombola.search import SearchSettings
    from tombola.search.learned import Learned
    from tombola.training.settings import TrainSettings


@dataclass(frozen=True)
class Found:
    """The result of a search: a mask, and the weights that the ticket may start from.

    Attributes:
        mask: The stage that draws the mask.
        start: The model that retraining starts from; None is the pre-trained one.
        head: The model that retraining takes its head from, if not `start`.
        trained: The weights on which the mask was found, or those that the search produced: the ticket's weights if
            nothing is retrained. None stands for the plain fine-tuning.
        fresh_head: The number of the new head that retraining starts with; 0 keeps the head of `start`.
        cut_by: The mask by which `trained` was cut out, if it is already a small model.
    """

    mask: MaskStage
    start: ModelStage[Any] | None = None
    head: ModelStage[Any] | None = None
    trained: ModelStage[Any] | None = None
    fresh_head: int = 0
    cut_by: MaskStage | None = None


class StageBuilder(Protocol):
    """The stages that a search can plan. Equal calls return equal stages, which run only once."""

    @property
    def rounds(self) -> int:
        """The number of steps in which units are removed, with a training of the small model in between."""
        ...

    def train(
        self,
        mask: MaskStage | None = None,
        start: ModelStage[Any] | None = None,
        head: ModelStage[Any] | None = None,
        stop_at: float | None = None,
        fresh_head: int = 0,
        settings: TrainSettings | None = None,
        length: float = 1.0,
    ) -> ModelStage[Any]:
        """Train under `mask`, from the pre-trained weights unless `start` is given.

        Runs the whole schedule, or up to step `stop_at`; a value below 1 is a fraction of the steps. Uses the
        recipe's `train` or other `settings`, for a fraction (`length`) of their epochs. With a `fresh_head` the head
        is initialised anew, differently for every number.
        """
        ...

    def learn(
        self, settings: Learned, sparsity: float | None, start: ModelStage[Any] | None = None
    ) -> SearchStage:
        """Learn scores to draw masks from, by gradient descent; for one sparsity if they depend on it.

        With `settings.weights` the stage also produces a model.
        """
        ...

    def score(self, scorer: SearchSettings, of: ModelStage[Any] | None = None) -> ScoreStage:
        """Score the units of a model (`of`, or the pre-trained one), for draws at any sparsity."""
        ...

    def draw(
        self,
        scorer: SearchSettings,
        sparsity: float,
        of: ModelStage[Any] | None = None,
        within: MaskStage | None = None,
        scores: ScoreStage | None = None,
        progress: float = 1.0,
        pruned: Prune | None = None,
    ) -> MaskStage:
        """Score the units of a model (`of`, or the pre-trained one), or use given scores, and remove the lowest.

        If the recipe's draw has a target, the mask meets it or, with `progress`, goes part of the way. A `pruned`
        model brings its own mask.
        """
        ...

    def prune(self, settings: SearchSettings, sparsity: float, of: ModelStage[Any] | None = None) -> Prune:
        """Prune the layers of a model (`of`, or the pre-trained one) in order, and update the remaining weights."""
        ...

    def shrink(
        self, mask: MaskStage, of: ModelStage[Any] | None = None, within: MaskStage | None = None
    ) -> ModelStage[Any]:
        """Cut the units that a mask keeps out of a model (`of`, or the pre-trained one), itself cut out by `within`."""
        ...

    def given(
        self, masks: Sequence[str], combine: Literal["union", "intersection"], base: Literal["same", "any"]
    ) -> MaskStage:
        """Load and combine masks from files, made for the pre-trained model or for any of the same geometry."""
        ...
