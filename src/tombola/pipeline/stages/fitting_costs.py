"""The costs of models, counted or timed, and the target that a choice of units must meet."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import TYPE_CHECKING

from tombola.errors import RecipeError
from tombola.recipe.drawing import Quantity

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tombola.masks.fitting import Cost, Kept
    from tombola.pipeline.stages.fit import FitStage
    from tombola.shrink.latency import LatencyTable
    from tombola.shrink.texts import Texts

ROUNDS = 15
"""Rounds of timing for a choice."""


class Costs:
    """The costs of models, and the target that they must meet."""

    def __init__(
        self,
        stage: FitStage,
        origin: PreTrainedModel,
        table: LatencyTable | None = None,
        texts: Texts | None = None,
    ) -> None:
        from tombola.shrink.measuring import correction_seconds

        self.stage = stage
        self.table = table
        if self.table is None or texts is None:
            self.plain = {0: _counted(stage.quantity, origin)}
            return
        before = {size: correction_seconds(texts.batches(origin, size, ROUNDS)) for size in self.table.sizes}
        self.plain = {
            size: timed.cost.after(before[size] / timed.dense) for size, timed in self.table.sizes.items()
        }

    @property
    def target(self) -> float:
        """The target of this step: the whole way, or a part of it in equal ratios."""
        way, value = self.stage.progress, self.stage.value
        if self.stage.quantity == "sparsity":
            return float(1 - (1 - value) ** way)
        if self.stage.quantity == "latency":
            dense = 1000 * max(timed.dense for timed in self.table.sizes.values()) if self.table else value
            if dense <= value:
                raise RecipeError(
                    f"draw.latency: the dense model already takes {dense:.3g} ms, less than {value:g} ms: "
                    "set a lower latency"
                )
            return float(dense ** (1 - way) * value**way)
        return float(value**way)

    def allowed(self, size: int, dense: float | None = None) -> float:
        """Return the share of the dense model's cost that may be left."""
        match self.stage.quantity:
            case "sparsity":
                return 1 - self.target
            case "speedup":
                return 1 / self.target
            case "parameters":
                return self.target
            case "latency":
                assert self.table is not None
                return self.target / 1000 / (dense or self.table.sizes[size].dense)

    def within_target(self) -> list[Cost]:
        """Return the costs relative to the allowed ones."""
        return [cost.scaled(1 / self.allowed(size)) for size, cost in self.plain.items()]

    def out_of_reach(self, lowest: float) -> RecipeError:
        """Return the error for a target that no allowed model meets; it names the nearest one that can be met.

        Args:
            lowest: The cost of the smallest model as a fraction of the allowed one.
        """
        target, quantity = self.target, self.stage.quantity
        match quantity:
            case "sparsity":
                limit = floor(1000 * (1 - lowest * (1 - target))) / 1000
                smallest, remedy = f"removes {limit:.1%} of the weights", f"at most {limit:g}"
            case "parameters":
                limit = ceil(1000 * lowest * target) / 1000
                smallest, remedy = f"has {limit:.1%} of the parameters", f"at least {limit:g}"
            case "speedup":
                limit = floor(100 * target / lowest) / 100
                smallest, remedy = f"is {limit:g} times as fast", f"at most {limit:g}"
            case "latency":
                limit, size = ceil(10 * lowest * target) / 10, max(self.plain)
                smallest, remedy = f"takes {limit:g} ms at batch size {size}", f"at least {limit:g}"
                remedy += ", or draw.batch_size to a smaller one" if size > 1 else ""
        if isinstance(self.stage.layers, int):
            remedy += ", or draw.layers to fewer"
        elif not {"head", "neuron"} <= set(self.stage.search.units.split("+")):
            remedy += ", or search.units to head+neuron"
        return RecipeError(
            f"draw.{quantity}: the smallest possible model {smallest}: set draw.{quantity} to {remedy}"
        )

    def correct(self, kept: Sequence[Kept | None], measured: dict[int, tuple[float, float]]) -> None:
        """Correct the table to reproduce the measurement."""
        factors = {size: share / self.plain[size].of(kept) for size, (_, share) in measured.items()}
        self.plain = {size: cost.scaled(factors[size]) for size, cost in self.plain.items()}

    def excess(self, measured: dict[int, tuple[float, float]]) -> float:
        """Return by what share the slowest batch size misses the target; negative if it is faster."""
        return max(share / self.allowed(size, dense) for size, (dense, share) in measured.items()) - 1

    def measured(self, measured: dict[int, tuple[float, float]]) -> float:
        """Return the measured quantity of the slowest batch size."""
        if self.stage.quantity == "latency":
            return 1000 * max(dense * share for dense, share in measured.values())
        return min(1 / share for _, share in measured.values())

    def reached(self, kept: Sequence[Kept | None]) -> float:
        """Return the quantity according to the costs."""
        share = max(cost.of(kept) for cost in self.plain.values())
        match self.stage.quantity:
            case "sparsity":
                return 1 - share
            case "speedup":
                return 1 / share
            case _:
                return share


def _counted(quantity: Quantity, model: PreTrainedModel) -> Cost:
    """Return the cost of a model as a share of the layers' weights, or of all parameters."""
    from tombola.families import family_of
    from tombola.masks import Layout, Units
    from tombola.masks.fitting import Cost

    layout = Layout.of(model)
    units = {kind: Units.of(model, kind).groups[0] for kind in ("head", "neuron")}
    head, neuron = units["head"], units["neuron"]
    if quantity == "sparsity":
        weights = sum(matrix.size for matrix in layout.matrices if matrix.layer is not None)
        return Cost(
            0.0,
            lambda heads, neurons: (heads * head.unit_weights + neurons * neuron.unit_weights) / weights,
        )
    biased = {
        kind: sum(part.width for part in group.biases) + group.unit_weights for kind, group in units.items()
    }
    layers = [
        sum(parameter.numel() for parameter in layer.parameters())
        for layer in family_of(model).layers_of(model)
    ]
    total = model.num_parameters()
    fixed = layers[0] - head.count * biased["head"] - neuron.count * biased["neuron"]
    return Cost(
        (total - sum(layers)) / total,
        lambda heads, neurons: (fixed + heads * biased["head"] + neurons * biased["neuron"]) / total,
    )
