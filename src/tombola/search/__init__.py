"""Search methods that find tickets. Each is one file: its settings, its paper and one function.

There are two kinds. A *scorer* (`@scorer`) gives every unit a score, and one draw removes the lowest, or those that
its own `choose` selects. A *plan* (`@plan`) composes trainings, searches and draws, as iterative pruning does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.errors import TombolaError
from tombola.foundations.caching import shared
from tombola.foundations.choices import Choice, tag_of
from tombola.foundations.registry import Registry
from tombola.masks.names import Scope, UnitsName
from tombola.search.planning import Found, StageBuilder

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from tombola.augmentations import AugmentSettings
    from tombola.masks import Base, Mask, Scores, Units
    from tombola.pipeline.stages.base import MaskStage, ModelStage

__all__ = [
    "Amount",
    "Choose",
    "Evidence",
    "Found",
    "Plan",
    "Scorer",
    "ScorerSettings",
    "Search",
    "SearchSettings",
    "StageBuilder",
    "about",
    "check_start",
    "lowest",
    "plan",
    "scorer",
    "searches",
]

searches: Registry[Search] = Registry(
    "search method",
    [
        f"tombola.search.{name}"
        for name in (
            "block_influence",
            "given",
            "grasp",
            "importance",
            "iterative",
            "layers",
            "learned",
            "magnitude",
            "random",
            "ria",
            "sparsegpt",
            "wanda",
        )
    ],
)


class SearchSettings(Choice):
    """Settings common to all searches: the method's name and the units that it ranks."""

    choices: ClassVar = searches
    tag: ClassVar[str] = "method"

    trains_weights: ClassVar[bool] = False
    """Whether `train` inherits the recipe's own training settings, and is not a different kind of training."""
    reads_data: ClassVar[bool] = False
    """Whether the scores depend on training data, and so on how texts are truncated."""
    usual_scope: ClassVar[Scope] = "global"
    """The scope of the ranking if the recipe's draw sets none."""
    only_global: ClassVar[bool] = False
    """Whether units are always ranked over the whole model, so that the draw takes no other scope."""

    method: str
    units: UnitsName = Field("weight", description="kind of unit to remove; two kinds together as head+ffn")
    pooler: bool = Field(
        True,
        description="whether the pooler may be pruned; one that was never trained loses all of its weights",
    )
    classifier: bool = Field(
        False, description="whether the task head's matrices may be pruned too; for units: weight"
    )
    biases: bool = Field(False, description="whether biases may be pruned too; for units: weight")
    layers: tuple[int, ...] | None = Field(
        None, min_length=1, description="layers that may be pruned, from 0; by default all"
    )
    task: str | None = Field(None, description="transfer: search on this task instead of the recipe's")

    def units_of(self, model: PreTrainedModel, base: Base | None = None) -> Units:
        """Return the prunable units of a model."""
        from tombola.masks import Units

        units = Units.of(
            model, self.units, base, classifier=self.classifier, biases=self.biases, layers=self.layers
        )
        return units if self.pooler else units.without("pooler")

    def texts_read(self, examples: int, batch_size: int) -> float | None:
        """Return about how many texts the scores read of so many training examples; None if unknown."""
        return None if self.reads_data else 0.0

    def check_model(self, config: PreTrainedConfig) -> None:
        """Raise if the search cannot work on models of this config."""
        return None

    @property
    def coverage(self) -> dict[str, Any]:
        """The settings that determine the units, for another search over the same ones."""
        return {name: getattr(self, name) for name in ("units", "pooler", "classifier", "biases", "layers")}

    @model_validator(mode="after")
    def _check_single_weights(self) -> Self:
        for name in ("classifier", "biases"):
            if getattr(self, name) and self.units != "weight":
                raise ValueError(f"{name}: only works with units: weight, not {self.units}")
        if self.classifier and self.task is not None:
            raise ValueError("classifier: the head belongs to one task, so its mask cannot be transferred")
        return self

    @property
    def starts_at(self) -> float | None:
        """The point of the fine-tuning it starts from: a step, a fraction of the steps, or None for the end."""
        return None

    @property
    def changes_weights(self) -> bool:
        """Whether the search produces new weights besides the mask, as `Found.trained`."""
        return False

    @property
    def layerwise(self) -> bool:
        """Whether the search prunes layer by layer, as in `search.layerwise`, rather than by scores of all units."""
        return False


class ScorerSettings(SearchSettings):
    """Settings common to all scorers: also the model whose units they score."""

    start: Literal["pretrained", "finetuned", "random"] = Field(
        "pretrained", description="weights to score; random: a newly initialised model"
    )
    start_step: int | None = Field(
        None,
        gt=0,
        description="start: finetuned: use the checkpoint after this step of the fine-tuning (early pruning)",
    )
    start_share: float | None = Field(
        None, gt=0, lt=1, description="the same, as a share of the fine-tuning's steps"
    )

    @model_validator(mode="after")
    def _check_start(self) -> Self:
        check_start(self.start, self.start_step, self.start_share)
        return self

    @property
    def starts_at(self) -> float | None:
        """The step of the fine-tuning whose weights are scored."""
        return self.start_step or self.start_share

    def scored(self) -> Self | None:
        """Return the settings that shared scores depend on; None if every draw computes its own scores."""
        return None


def check_start(start: str, step: int | None, share: float | None) -> None:
    """Reject a step without a fine-tuned start, or a step given twice."""
    named = [name for name, value in (("start_step", step), ("start_share", share)) if value is not None]
    if named and start != "finetuned":
        raise ValueError(f"{named[0]}: needs start: finetuned")
    if len(named) == 2:
        raise ValueError("start_share: is another way to give start_step: set only one of them")


def _no_examples(count: int, size: int) -> Iterator[dict[str, Any]]:
    raise TombolaError("there are no examples to calibrate on")


def _no_progress(done: int, steps: int) -> None:
    pass


def _no_copies(augment: AugmentSettings) -> Callable[[int | None], Iterator[dict[str, Any]]]:
    raise TombolaError("there are no augmented copies of these batches")


@dataclass(frozen=True)
class Evidence:
    """What a scorer may use besides the model: the seed and, on demand, batches of training data."""

    seed: int
    batches: Callable[[int | None], Iterator[dict[str, Any]]]
    """Yields the given number of training batches, or with None the whole training set once."""
    augmented: Callable[[AugmentSettings], Callable[[int | None], Iterator[dict[str, Any]]]] = _no_copies
    """Does the same for augmented copies of the training data."""
    examples: Callable[[int, int], Iterator[dict[str, Any]]] = _no_examples
    """Yields the given number of training examples, or all if there are fewer, in batches of the given size."""
    progress: Callable[[int, int], None] = _no_progress
    """Called with the number of completed steps and the total."""


Scorer = Callable[[Any, "PreTrainedModel", "Units", Evidence], "Scores"]
Amount = float | Mapping[str, int]
"""How much to remove: a fraction of the units, or a number of units of each kind, as in `{"head": 28, "ffn": 2}`."""
Choose = Callable[[Any, "Scores", Amount, "Scope", "Mask | None"], "Mask"]
Plan = Callable[[Any, StageBuilder, float], Found]


def lowest(settings: Any, scores: Scores, amount: Amount, scope: Scope, within: Mask | None) -> Mask:
    """Remove the lowest scores: the default choice."""
    from tombola.masks.drawing import draw, draw_counts

    if isinstance(amount, Mapping):
        return draw_counts(scores, amount, within)
    return draw(scores, sparsity=amount, scope=scope, within=within)


@dataclass(frozen=True)
class Search:
    """A registered search: its settings, its plan or scorer, and the first line of its docstring."""

    settings: type[SearchSettings]
    plan: Plan
    scorer: Scorer | None
    about: str
    choose: Choose = lowest


def scorer(settings: type[SearchSettings], choose: Choose = lowest) -> Callable[[Scorer], Scorer]:
    """Register a function that scores units; its tickets are drawn once, from the model that `start` names.

    `choose` turns the scores into a mask, unless simply the lowest are removed.
    """

    def register(function: Scorer) -> Scorer:
        searches(tag_of(settings))(Search(settings, _draw_once, function, about(function), choose))
        return function

    return register


def plan(settings: type[SearchSettings]) -> Callable[[Plan], Plan]:
    """Register a function that composes trainings and draws."""

    def register(function: Plan) -> Plan:
        searches(tag_of(settings))(Search(settings, function, None, about(function)))
        return function

    return register


def _draw_once(settings: Any, builder: StageBuilder, sparsity: float) -> Found:
    if settings.layerwise:
        return draw_in_order(settings, builder, sparsity)
    of = builder.train(stop_at=settings.starts_at) if settings.start == "finetuned" else None
    scorer = shared(settings.scored)
    if builder.rounds > 1:
        return _draw_gradually(settings, builder, sparsity, of)
    if scorer is None:
        return Found(builder.draw(settings, sparsity, of=of), trained=of)
    return Found(builder.draw(settings, sparsity, scores=builder.score(scorer, of)), trained=of)


def draw_in_order(settings: Any, builder: StageBuilder, sparsity: float) -> Found:
    """Prune the model that the search starts from, layer by layer."""
    of = builder.train(stop_at=settings.starts_at) if settings.start == "finetuned" else None
    if not settings.changes_weights:
        return Found(builder.draw(settings, sparsity, of=of), trained=of)
    pruned = builder.prune(settings, sparsity, of)
    return Found(builder.draw(settings, sparsity, of=of, pruned=pruned), trained=pruned)


def _draw_gradually(
    settings: Any, builder: StageBuilder, sparsity: float, of: ModelStage[Any] | None
) -> Found:
    """Remove units in several steps, and train the remaining small model after each step but the last."""
    before: MaskStage | None = None
    mask: MaskStage | None = None
    for step in range(1, builder.rounds + 1):
        if mask is not None:
            small = builder.shrink(mask, of=of, within=before)
            of, before = builder.train(start=small, settings=getattr(settings, "train", None)), mask
        scores = builder.score(shared(settings.scored) or settings, of)
        mask = builder.draw(settings, sparsity, within=before, scores=scores, progress=step / builder.rounds)
    assert mask is not None
    return Found(mask, trained=of, cut_by=before)


def about(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring."""
    return (function.__doc__ or "").strip().splitlines()[0]
