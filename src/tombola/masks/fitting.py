"""Masks that keep the most importance within a cost, with equal layers; see `knapsack` for layers of their own sizes.

A cost is the time, parameters or weights of a model of some geometry. It is the sum of a constant and a term per
layer, which depends on the heads and neurons that the layer keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Literal

import numpy as np

from tombola.errors import TombolaError
from tombola.masks.mask import Mask
from tombola.masks.scores import Scores
from tombola.masks.select import highest

TIGHT = 0.96
"""A choice that uses less of the budget than this counts only if none uses at least as much."""
EXACT = 1 + 1e-9
"""A cost that is exactly the budget may come out above 1, by rounding."""
WIDTH = 1 / 8
"""The least share of its neurons that a layer keeps where as many layers as possible stay."""


class OutOfReach(TombolaError):
    """A target that the smallest possible model misses.

    Args:
        lowest: The cost of the smallest model as a fraction of the budget.
    """

    def __init__(self, lowest: float) -> None:
        self.lowest = lowest
        super().__init__(f"the smallest model costs {ceil(100 * lowest) / 100:.2f} times the target")


@dataclass(frozen=True)
class Cost:
    """The cost of a model as a fraction of the budget: 1 is the whole budget.

    Args:
        constant: The cost outside the layers: embeddings, the task head.
        layer: The cost of one layer as a function of its heads and neurons.
    """

    constant: float
    layer: Callable[[int, int], float]

    def scaled(self, factor: float) -> Cost:
        """Return the same cost relative to another budget."""
        return Cost(self.constant * factor, lambda heads, neurons: self.layer(heads, neurons) * factor)

    def after(self, constant: float) -> Cost:
        """Return the same cost plus a constant."""
        return Cost(self.constant + constant, self.layer)

    def of(self, layers: Sequence[Kept | None]) -> float:
        """Return the cost of a model; None stands for a removed layer."""
        return self.constant + sum(
            self.layer(layer.heads, layer.neurons) for layer in layers if layer is not None
        )


@dataclass(frozen=True)
class Kept:
    """The numbers of heads and neurons that a layer keeps."""

    heads: int
    neurons: int


@dataclass(frozen=True)
class Ranking:
    """The units of each layer, ranked by score from highest to lowest.

    Args:
        scores: Scores of heads, neurons, FFNs or layers.
        multiple: The number of kept neurons is a multiple of this.
        heads: The numbers of heads that a layer may keep; None allows any.
        min_heads: The minimum number of heads per layer; a layer with fewer keeps all.
        min_neurons: The minimum number of neurons per layer; a layer with fewer keeps all.
    """

    scores: Scores
    multiple: int = 8
    heads: tuple[int, ...] | None = None
    min_heads: int = 0
    min_neurons: int = 0

    @cached_property
    def layers(self) -> list[LayerRanking]:
        """The ranking of each layer."""
        units = self.scores.units
        lowest = min(0.0, *(float(values.min()) for values in self.scores.values()))
        sums: dict[tuple[int | None, str], np.ndarray] = {}
        for group in units.groups:
            if bool(self.scores[group.name].isnan().any()):
                raise TombolaError(f"some scores of {group.name} are NaN, so no mask can be drawn.")
            values = (self.scores[group.name].double() - lowest).sort(descending=True).values
            sums[group.layer, group.kind] = np.concatenate([[0.0], values.cumsum(0).numpy()])
        rankings = []
        for index, roles in units.layout.layers().items():
            whole = Kept(units.layout.heads(index), roles["up"].outputs)
            of = {kind: sums.get((index, kind)) for kind in ("head", "neuron", "ffn", "layer")}
            rankings.append(LayerRanking(whole, of, self))
        return rankings

    @property
    def kinds(self) -> set[str]:
        """The kinds of unit that have scores."""
        return set(self.scores.units.kinds)

    @property
    def removes_layers(self) -> bool:
        """Whether the units together cover whole layers."""
        return "layer" in self.kinds or ("head" in self.kinds and bool(self.kinds & {"neuron", "ffn"}))


@dataclass(frozen=True)
class LayerRanking:
    """The sizes that one layer may have, and the importance each keeps."""

    whole: Kept
    sums: Mapping[str, np.ndarray | None]
    ranking: Ranking

    @cached_property
    def options(self) -> list[Kept]:
        """The sizes that the layer may have, from the smallest to the whole layer."""
        heads, neurons = [self.whole.heads], [self.whole.neurons]
        if self.sums["layer"] is not None:
            return [Kept(0, 0), self.whole]
        if self.sums["head"] is not None:
            allowed = self.ranking.heads or range(self.whole.heads + 1)
            least = min(self.ranking.min_heads, self.whole.heads)
            heads = [count for count in allowed if least <= count <= self.whole.heads]
        if self.sums["ffn"] is not None:
            neurons = [0, self.whole.neurons]
        elif self.sums["neuron"] is not None:
            steps = range(0, self.whole.neurons, self.ranking.multiple)
            least = min(self.ranking.min_neurons, self.whole.neurons)
            neurons = [count for count in (*steps, self.whole.neurons) if count >= least]
        return [Kept(head_count, neuron_count) for head_count in heads for neuron_count in neurons]

    def importance(self, kept: Kept) -> float:
        """Return the sum of the scores that the layer keeps at this size."""
        if (layer := self.sums["layer"]) is not None:
            return float(layer[1]) if kept == self.whole else 0.0
        total = 0.0
        if (heads := self.sums["head"]) is not None:
            total += float(heads[kept.heads])
        if (neurons := self.sums["neuron"]) is not None:
            total += float(neurons[kept.neurons])
        if (ffn := self.sums["ffn"]) is not None:
            total += float(ffn[1]) if kept.neurons else 0.0
        return total


def fit_uniform(
    ranking: Ranking,
    costs: Sequence[Cost],
    fixed: Sequence[int] = (),
    layers: int | Literal["importance", "most"] = "importance",
) -> list[Kept | None]:
    """Keep the same number of heads and neurons in some layers, and drop the others, for the most importance.

    Tries every allowed number of layers with every width. The layers that keep the most importance at that width stay.

    Args:
        ranking: The units by importance.
        costs: Costs that must all stay within 1.
        fixed: Layers that must stay.
        layers: The number of layers to keep; `importance` allows any; `most` takes the largest number of which each can
            keep the share `WIDTH` of its neurons, since training tends to make up for missing neurons better than for
            missing layers.
    """
    check_uniform(ranking, costs, fixed, layers)
    fitting: list[tuple[float, float, list[Kept | None]]] = []
    count, whole = len(ranking.layers), ranking.layers[0].whole
    for kept, sizes in _equal_layers(ranking, costs, fixed, layers):
        worth = [layer.importance(kept) for layer in ranking.layers]
        order = sorted(range(count), key=lambda index: (index not in fixed, -worth[index], index))
        for left, cost in sizes:
            if cost <= EXACT:
                stay = set(order[:left])
                chosen = [kept if index in stay else None for index in range(count)]
                fitting.append((cost, sum(worth[index] for index in stay), chosen))
    if layers == "most":
        wide = [
            candidate
            for candidate in fitting
            if any(kept and kept.neurons >= WIDTH * whole.neurons for kept in candidate[2])
        ]
        return max(
            wide or fitting,
            key=lambda candidate: (sum(kept is not None for kept in candidate[2]), candidate[1]),
        )[2]
    tight = [candidate for candidate in fitting if candidate[0] >= TIGHT]
    return max(tight or fitting, key=lambda candidate: candidate[1])[2]


def check_uniform(
    ranking: Ranking,
    costs: Sequence[Cost],
    fixed: Sequence[int] = (),
    layers: int | Literal["importance", "most"] = "importance",
) -> None:
    """Raise if `fit_uniform` finds nothing, whatever the scores are."""
    sizes = _equal_layers(ranking, costs, fixed, layers)
    lowest = min((cost for _, allowed in sizes for _, cost in allowed), default=np.inf)
    if lowest > EXACT:
        raise OutOfReach(lowest)


def check_freely(ranking: Ranking, costs: Sequence[Cost]) -> None:
    """Raise if the smallest layers exceed a cost, whatever the scores are."""
    lowest = max(
        cost.constant
        + sum(min(cost.layer(one.heads, one.neurons) for one in layer.options) for layer in ranking.layers)
        for cost in costs
    )
    if lowest > EXACT:
        raise OutOfReach(lowest)


def _equal_layers(
    ranking: Ranking,
    costs: Sequence[Cost],
    fixed: Sequence[int],
    layers: int | Literal["importance", "most"],
) -> Iterator[tuple[Kept, list[tuple[int, float]]]]:
    """Yield every allowed size of a layer, with the numbers of such layers and the largest cost of each number."""
    counts = _numbers_of_layers(ranking, fixed, layers)
    for kept in ranking.layers[0].options:
        if kept.heads and kept.neurons:
            each = [(cost.constant, cost.layer(kept.heads, kept.neurons)) for cost in costs]
            yield kept, [(left, max(constant + left * layer for constant, layer in each)) for left in counts]


def _numbers_of_layers(
    ranking: Ranking, fixed: Sequence[int], layers: int | Literal["importance", "most"]
) -> Sequence[int]:
    count = len(ranking.layers)
    if isinstance(layers, int):
        if not max(1, len(fixed)) <= layers <= (count if ranking.removes_layers else 0):
            allowed = (
                f"can keep {max(1, len(fixed))} to {count} layers"
                if ranking.removes_layers
                else "keeps all its layers"
            )
            raise TombolaError(f"draw.layers: with these units the model {allowed}, not {layers}")
        return [layers]
    return range(max(1, len(fixed)), count + 1) if ranking.removes_layers else [count]


def mask_of(scores: Scores, layers: Sequence[Kept | None]) -> Mask:
    """Return the mask that keeps the given number of highest units per layer; among equal scores the earlier stay."""
    numbers = list(scores.units.layout.layers())
    kept = {}
    for group in scores.units.groups:
        assert group.layer is not None
        layer = layers[numbers.index(group.layer)]
        if layer is None:
            count = 0
        else:
            whole = {"head": layer.heads, "neuron": layer.neurons, "ffn": bool(layer.neurons)}
            count = int(whole.get(group.kind, layer.heads > 0 or layer.neurons > 0))
        kept[group.name] = highest(scores[group.name], count)
    return Mask.from_bools(scores.units, kept)
