"""What a search plans with: a builder of stages, and what the search leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from tombola.pipeline.stages.base import MaskStage, ModelStage, ScoreStage
    from tombola.pipeline.stages.prune import Prune
    from tombola.pipeline.stages.search import Search
    from tombola.search import SearchSettings
    from tombola.search.learned import Learned
    from tombola.training.settings import TrainSettings


@dataclass(frozen=True)
class Found:
    """What a search leads to: a mask, and the weights that the ticket may start from.

    Attributes:
        mask: The stage that draws the mask.
        start: The model that retraining starts from; None is the pre-trained one.
        head: The model that retraining takes its head from, where that is another than `start`.
        trained: The weights that the mask was found on, or that the search made of them: the ticket's own where
            nothing is retrained. None stands for the plain fine-tuning.
        fresh_head: The number of the new head that retraining starts with; 0 for the one that `start` brings.
        cut_by: The mask that `trained` was cut out by, where it is a small model already.
    """

    mask: MaskStage
    start: ModelStage[Any] | None = None
    head: ModelStage[Any] | None = None
    trained: ModelStage[Any] | None = None
    fresh_head: int = 0
    cut_by: MaskStage | None = None


class StageBuilder(Protocol):
    """What a search may plan. Each call gives a stage; equal calls give equal stages, of which one runs."""

    @property
    def rounds(self) -> int:
        """In how many steps units are removed, with a training of the small model in between."""
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

        The whole schedule, or so many steps of it; a `stop_at` below 1 is a share of its steps. Trained as the recipe's
        `train` says, or other `settings`, for a share (`length`) of their epochs. With a `fresh_head` the head is
        drawn anew, another one for every number.
        """
        ...

    def learn(
        self, settings: Learned, sparsity: float | None, start: ModelStage[Any] | None = None
    ) -> Search:
        """Learn scores by gradient descent, from which masks are drawn; at one sparsity if they depend on it.

        With `settings.weights` it leaves a model as well.
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
        """Score the units of a model (`of`, or the pre-trained one), or take given scores; remove the lowest.

        Where the recipe's draw has a target, what meets it is drawn, or with `progress` a part of the way there. A
        model that is `pruned` already brings its mask along.
        """
        ...

    def prune(self, settings: SearchSettings, sparsity: float, of: ModelStage[Any] | None = None) -> Prune:
        """Prune the layers of a model (`of`, or the pre-trained one) in order, with new weights for what is left."""
        ...

    def shrink(
        self, mask: MaskStage, of: ModelStage[Any] | None = None, within: MaskStage | None = None
    ) -> ModelStage[Any]:
        """Cut what a mask keeps out of a model (`of`, or the pre-trained one), which `within` was cut out by."""
        ...

    def given(
        self, masks: Sequence[str], combine: Literal["union", "intersection"], base: Literal["same", "any"]
    ) -> MaskStage:
        """Masks from files, combined; of the pre-trained model, or of any of the same geometry."""
        ...
