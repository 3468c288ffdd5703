"""How tickets are found. A search is one file: its settings, its paper, and one function.

There are two kinds. A *scorer* (`@scorer`) gives every unit a score, and one draw removes the lowest, or what its own
`choose` says. A *plan* (`@plan`) composes trainings, searches and draws, as iterative pruning does.
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
    from transformers import PreTrainedModel

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
            *(
                "block_influence",
                "given",
                "grasp",
                "importance",
                "iterative",
                "layers",
                "learned",
                "magnitude",
            ),
            *("random", "ria", "sparsegpt", "wanda"),
        )
    ],
)


class SearchSettings(Choice):
    """What every search has: its method's name and the units that it ranks."""

    choices: ClassVar = searches
    tag: ClassVar[str] = "method"

    trains_weights: ClassVar[bool] = False
    """Whether its `train` is the recipe's own, less what it changes, and not a training of another kind."""
    reads_data: ClassVar[bool] = False
    """Whether the scores depend on training data, and so on how it is cut to length."""
    usual_scope: ClassVar[Scope] = "global"
    """What is ranked together where the recipe's draw does not say it."""

    method: str
    units: UnitsName = Field("weight", description="what is removed; two kinds together as head+ffn")
    pooler: bool = Field(
        True, description="whether the pooler may lose weights; one that was never trained loses all of them"
    )
    classifier: bool = Field(
        False, description="whether the task head's matrices may lose weights too; for units: weight"
    )
    biases: bool = Field(False, description="whether biases may lose entries too; for units: weight")
    layers: tuple[int, ...] | None = Field(
        None, min_length=1, description="the layers that may lose units, from 0; else all"
    )
    task: str | None = Field(None, description="transfer: search on this task, in place of the recipe's")

    def units_of(self, model: PreTrainedModel, base: Base | None = None) -> Units:
        """The units of a model that may go."""
        from tombola.masks import Units

        units = Units.of(
            model, self.units, base, classifier=self.classifier, biases=self.biases, layers=self.layers
        )
        return units if self.pooler else units.without("pooler")

    @property
    def coverage(self) -> dict[str, Any]:
        """The settings that say which units there are, for another search over the same ones."""
        return {name: getattr(self, name) for name in ("units", "pooler", "classifier", "biases", "layers")}

    @model_validator(mode="after")
    def _of_single_weights(self) -> Self:
        for name in ("classifier", "biases"):
            if getattr(self, name) and self.units != "weight":
                raise ValueError(f"{name}: is for units: weight, not for {self.units}")
        if self.classifier and self.task is not None:
            raise ValueError("classifier: the head belongs to one task, so its mask cannot be transferred")
        return self

    @property
    def starts_at(self) -> float | None:
        """Where it starts in the fine-tuning: a step, a share of its steps, or None for its end."""
        return None

    @property
    def changes_weights(self) -> bool:
        """Whether it leaves weights of its own besides the mask, as `Found.trained`."""
        return False

    @property
    def layerwise(self) -> bool:
        """Whether it prunes one layer after the other, as `search.layerwise` does, and not by scores of all."""
        return False


class ScorerSettings(SearchSettings):
    """What every scorer has besides: the model whose units it scores."""

    start: Literal["pretrained", "finetuned", "random"] = Field(
        "pretrained", description="the weights that are scored; random: the model initialised anew"
    )
    start_step: int | None = Field(
        None,
        gt=0,
        description="with start: finetuned, the fine-tuning as it is after this step (early pruning)",
    )
    start_share: float | None = Field(
        None, gt=0, lt=1, description="the same as a share of the fine-tuning's steps"
    )

    @model_validator(mode="after")
    def _step_of_a_training(self) -> Self:
        check_start(self.start, self.start_step, self.start_share)
        return self

    @property
    def starts_at(self) -> float | None:
        """The step of the fine-tuning whose weights are scored."""
        return self.start_step or self.start_share

    def scored(self) -> Self | None:
        """What the scores depend on, where many tickets share them; None has them made anew for each draw."""
        return None


def check_start(start: str, step: int | None, share: float | None) -> None:
    """Refuse a step of a training that the search does not start from, or two names for it."""
    named = [name for name, value in (("start_step", step), ("start_share", share)) if value is not None]
    if named and start != "finetuned":
        raise ValueError(f"{named[0]}: needs start: finetuned, whose step it names")
    if len(named) == 2:
        raise ValueError("start_share: names the same thing as start_step: say one of them")


def _no_examples(count: int, size: int) -> Iterator[dict[str, Any]]:
    raise TombolaError("there are no examples to calibrate on")


def _unwatched(done: int, steps: int) -> None:
    pass


def _no_copies(augment: AugmentSettings) -> Callable[[int | None], Iterator[dict[str, Any]]]:
    raise TombolaError("there are no augmented copies of these batches")


@dataclass(frozen=True)
class Evidence:
    """What a scorer may look at besides the model: the seed, and batches of training data if it asks."""

    seed: int
    batches: Callable[[int | None], Iterator[dict[str, Any]]]
    """So many batches of training data, or with None all of it once."""
    augmented: Callable[[AugmentSettings], Callable[[int | None], Iterator[dict[str, Any]]]] = _no_copies
    """The same of augmented copies of the training data."""
    examples: Callable[[int, int], Iterator[dict[str, Any]]] = _no_examples
    """So many examples of the training data, or all if it has fewer, in batches of so many."""
    progress: Callable[[int, int], None] = _unwatched
    """Is told the steps that are done, and the steps in all."""


Scorer = Callable[[Any, "PreTrainedModel", "Units", Evidence], "Scores"]
Amount = float | Mapping[str, int]
"""How much goes: a share of the units, or so many units of each kind, as `{"head": 28, "ffn": 2}`."""
Choose = Callable[[Any, "Scores", Amount, "Scope", "Mask | None"], "Mask"]
Plan = Callable[[Any, StageBuilder, float], Found]


def lowest(settings: Any, scores: Scores, amount: Amount, scope: Scope, within: Mask | None) -> Mask:
    """The usual choice: the lowest scores go."""
    from tombola.masks.drawing import draw, draw_counts

    if isinstance(amount, Mapping):
        return draw_counts(scores, amount, within)
    return draw(scores, sparsity=amount, scope=scope, within=within)


@dataclass(frozen=True)
class Search:
    """A registered search: its settings, how it goes, and the first line of what its author says of it."""

    settings: type[SearchSettings]
    plan: Plan
    scorer: Scorer | None
    about: str
    choose: Choose = lowest


def scorer(settings: type[SearchSettings], choose: Choose = lowest) -> Callable[[Scorer], Scorer]:
    """Register a function that scores units; its tickets are drawn once from the model it names as `start`.

    `choose` makes the mask of the scores, where the lowest of all are not simply what goes.
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
    of = builder.train(stop_at=settings.starts_at) if settings.start == "finetuned" else None
    if settings.layerwise:
        return draw_in_order(settings, builder, sparsity, of)
    scorer = shared(settings.scored)
    if builder.rounds > 1:
        return _draw_gradually(settings, builder, sparsity, of)
    if scorer is None:
        return Found(builder.draw(settings, sparsity, of=of), trained=of)
    return Found(builder.draw(settings, sparsity, scores=builder.score(scorer, of)), trained=of)


def draw_in_order(
    settings: SearchSettings, builder: StageBuilder, sparsity: float, of: ModelStage[Any] | None
) -> Found:
    """Prune one layer after the other, of a model (`of`, or the pre-trained one)."""
    if not settings.changes_weights:
        return Found(builder.draw(settings, sparsity, of=of), trained=of)
    pruned = builder.prune(settings, sparsity, of)
    return Found(builder.draw(settings, sparsity, of=of, pruned=pruned), trained=pruned)


def _draw_gradually(
    settings: Any, builder: StageBuilder, sparsity: float, of: ModelStage[Any] | None
) -> Found:
    """Remove units in several steps; after each but the last, train the small model that is left."""
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
    """The first line of what a function's author says of it."""
    return (function.__doc__ or "").strip().splitlines()[0]
