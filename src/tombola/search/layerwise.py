"""Shared parts of the calibrated searches: settings, scores of all matrices, and pruning in order.

Pruning in order follows the papers: layers are pruned from first to last, each calibrated on the outputs of the
pruned layers before it. It costs a second pass through every layer, and each sparsity needs a new run. Scoring the
dense model costs one pass and serves draws at every sparsity.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tombola.foundations.lazy import lazy_module
from tombola.masks.names import Scope, UnitsName
from tombola.search import Evidence, ScorerSettings
from tombola.search.calibration import Calibration, LayerWalk, check_passes
from tombola.search.input_statistics import StatisticName, Watch

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedConfig, PreTrainedModel

    from tombola import masks
    from tombola.masks import Mask, Part, Scores, Units
    from tombola.masks import layout as layouts
    from tombola.masks.in_matrices import MatrixSelection
else:
    masks, layouts = lazy_module("tombola.masks"), lazy_module("tombola.masks.layout")


class LayerwiseSettings(ScorerSettings):
    """Settings of a search that uses the inputs of each matrix on some training examples."""

    reads_data: ClassVar[bool] = True
    statistic: ClassVar[StatisticName] = "squares"
    """The statistic of a matrix's inputs that the search needs."""

    units: UnitsName = Field("weight", pattern="^weight$", description="single weights")
    start: Literal["pretrained", "finetuned", "random"] = Field(
        "finetuned", description="weights to prune; random: a newly initialised model"
    )
    calibration: Calibration = Field(Calibration(), description="training examples to calibrate on")

    @model_validator(mode="after")
    def _check_biases(self) -> Self:
        if self.biases:
            raise ValueError(f"biases: {self.method} prunes weights by their inputs, but biases have none")
        return self

    def check_model(self, config: PreTrainedConfig) -> None:
        """Raise if the model's layers cannot be calibrated one by one."""
        check_passes(config)

    @abstractmethod
    def prune(self, weight: Tensor, statistic: Tensor, selection: MatrixSelection) -> Tensor:
        """Prune a matrix in place and return which weights stay.

        Args:
            weight: The matrix, outputs × inputs.
            statistic: The statistic of its inputs.
            selection: How much to remove, and how to rank.
        """


class ScoredSettings(LayerwiseSettings):
    """Settings of a search that scores each weight by its value and its input."""

    usual_scope: ClassVar[Scope] = "row"

    sequential: bool = Field(
        True,
        description="prune layer by layer, each calibrated on the outputs of the pruned layers before it, as "
        "published; false: score all layers of the dense model in one pass, which serves every sparsity",
    )

    @property
    def layerwise(self) -> bool:
        """Whether layers are pruned in order."""
        return self.sequential

    def scored(self) -> Self:
        """One pass over the data serves draws at every sparsity."""
        return self

    @abstractmethod
    def score(self, weight: Tensor, squares: Tensor) -> Tensor:
        """Return a score for each weight of an outputs × inputs matrix; the lowest are removed.

        Args:
            weight: The matrix.
            squares: The sum of squares of each input.
        """

    def prune(self, weight: Tensor, statistic: Tensor, selection: MatrixSelection) -> Tensor:
        """Zero the weights with the lowest scores."""
        kept = selection.keep(self.score(weight, statistic))
        weight.masked_fill_(~kept, 0.0)
        return kept


@dataclass(frozen=True)
class Place:
    """The location of a matrix: a stored tensor or a part of one, possibly transposed."""

    name: str
    layer: int | None
    part: Part
    count: int
    transposed: bool

    @property
    def tensor(self) -> str:
        """The name of the stored tensor."""
        return self.part.tensor

    def view(self, stored: Tensor) -> Tensor:
        """Return the matrix as an outputs × inputs view of the stored tensor."""
        return self.stored(self.part.region(stored, self.count))

    def stored(self, values: Tensor) -> Tensor:
        """Convert values between outputs × inputs and the stored orientation, in either direction."""
        return values.T if self.transposed else values


def places_of(units: Units) -> list[Place]:
    """Return the matrices whose weights are units, in forward order."""
    matrices = {matrix.name: matrix for matrix in units.layout.matrices}
    return [
        Place(group.name, group.layer, group.parts[0], group.count, matrices[group.name].transposed)
        for group in units.groups
    ]


def dense_scores(
    settings: ScoredSettings, model: PreTrainedModel, units: Units, evidence: Evidence
) -> Scores:
    """Score all matrices by their inputs in the dense model."""
    parameters = layouts.parameters_of(model)
    scores: dict[str, Tensor] = {}

    def score(place: Place, squares: Tensor) -> None:
        weight = place.view(parameters[place.tensor].detach())
        scores[place.name] = place.stored(settings.score(weight, squares))

    _visit(settings, model, units, evidence, score, in_order=False)
    return masks.Scores(units, scores)


def prune_in_order(
    settings: LayerwiseSettings,
    model: PreTrainedModel,
    units: Units,
    evidence: Evidence,
    selection: MatrixSelection,
) -> Mask:
    """Prune a model in place, from its first layer to its last, and return the mask.

    Args:
        settings: How to prune a matrix.
        model: The model.
        units: Its units: single weights.
        evidence: Training data.
        selection: How much of each matrix to remove.
    """
    parameters = layouts.parameters_of(model)
    kept: dict[str, Tensor] = {}

    def prune(place: Place, statistic: Tensor) -> None:
        weight = place.view(parameters[place.tensor].detach())
        kept[place.name] = place.stored(settings.prune(weight, statistic, selection)).cpu()

    _visit(settings, model, units, evidence, prune, in_order=True)
    return masks.Mask.from_bools(units, kept)


def _visit(
    settings: LayerwiseSettings,
    model: PreTrainedModel,
    units: Units,
    evidence: Evidence,
    visit: Callable[[Place, Tensor], None],
    *,
    in_order: bool,
) -> None:
    """Visit all matrices with the statistics of their inputs, the pooler and the head last.

    With `in_order`, later layers see the changes that a visit makes.
    """
    model.eval()
    calibration = settings.calibration
    walk = LayerWalk(model, evidence.examples(calibration.examples, calibration.batch_size))
    places = places_of(units)
    steps = len(walk.layers)
    for index in range(steps):
        evidence.progress(index, steps)
        in_layer = [place for place in places if place.layer == index]
        visit_layer(walk, index, in_layer, settings.statistic, visit, in_order=in_order)
    outside = [place for place in places if place.layer is None]
    for together in [[place] for place in outside] if in_order else [outside] if outside else []:
        with Watch(walk, _maps(model, together), settings.statistic) as watch:
            walk.finish()
        _visit_all(together, watch.totals(), visit)
    evidence.progress(steps, steps)


def visit_layer(
    walk: LayerWalk,
    index: int,
    places: list[Place],
    statistic: StatisticName,
    visit: Callable[[Place, Tensor], None],
    *,
    in_order: bool,
) -> None:
    """Visit the matrices of a layer with the statistics of their inputs, and advance the batches past the layer.

    Args:
        walk: Batches that have reached the layer.
        index: The index of the layer.
        places: Its matrices.
        statistic: The statistic of the inputs.
        visit: Called for each matrix.
        in_order: Whether the next layer receives this layer's output from after the visit rather than before it.
    """
    with Watch(walk, _maps(walk.model, places), statistic) as watch:
        if in_order and places:
            for _ in walk.run(index):
                pass
        else:
            walk.advance(index)
    _visit_all(places, watch.totals(), visit)
    if in_order and places:
        walk.advance(index)


def _visit_all(
    places: list[Place], statistics: Mapping[str, Tensor], visit: Callable[[Place, Tensor], None]
) -> None:
    for place in places:
        visit(place, statistics[place.tensor])


def _maps(model: PreTrainedModel, places: list[Place]) -> dict[str, nn.Module]:
    """Return the linear layers that hold the matrices, by tensor name."""
    maps: dict[str, Any] = {}
    for place in places:
        path = place.tensor.removesuffix(".weight")
        of_head = path.startswith(layouts.HEAD)
        maps[place.tensor] = (
            model.get_submodule(path.removeprefix(layouts.HEAD))
            if of_head
            else model.base_model.get_submodule(path)
        )
    return maps
