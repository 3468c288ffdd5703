"""Masks that keep the most importance within a cost, with equal layers or with a separate size for each layer.

A cost is the time, parameters or weights of a model of some geometry. It is the sum of a constant and a term per
layer, which depends on the heads and neurons that the layer keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from tombola.errors import TombolaError
from tombola.masks.mask import Mask
from tombola.masks.scores import Scores

TIGHT = 0.96
"""A choice that uses less of the budget than this counts only if none uses at least as much."""
STEPS = 5000
"""The number of steps that the knapsack divides the budget into."""
SHRINKING = 12
"""Bisection steps towards the largest budget that satisfies all costs."""


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
        return self.constant + sum(self.layer(one.heads, one.neurons) for one in layers if one is not None)


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
        min_heads: The minimum number of heads per layer.
        min_neurons: The minimum number of neurons per layer.
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
            values = (self.scores[group.name].double() - lowest).sort(descending=True).values
            sums[group.layer, group.kind] = np.concatenate([[0.0], values.cumsum(0).numpy()])
        found = []
        for index, roles in units.layout.layers().items():
            whole = Kept(units.layout.heads(index), roles["up"].outputs)
            of = {kind: sums.get((index, kind)) for kind in ("head", "neuron", "ffn", "layer")}
            found.append(LayerRanking(whole, of, self))
        return found

    @property
    def kinds(self) -> set[str]:
        """The kinds of unit that have scores."""
        return set(self.scores.units.granularity.split("+"))

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
            heads = [count for count in allowed if self.ranking.min_heads <= count <= self.whole.heads]
        if self.sums["ffn"] is not None:
            neurons = [0, self.whole.neurons]
        elif self.sums["neuron"] is not None:
            steps = range(0, self.whole.neurons, self.ranking.multiple)
            neurons = [count for count in (*steps, self.whole.neurons) if count >= self.ranking.min_neurons]
        return [Kept(one, other) for one in heads for other in neurons]

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
    ranking: Ranking, costs: Sequence[Cost], fixed: Sequence[int] = (), layers: int | None = None
) -> list[Kept | None]:
    """Keep the same number of heads and neurons in some layers, and drop the others, for the most importance.

    Tries every number of layers with every width. The layers that keep the most importance at that width stay.

    Args:
        ranking: The units by importance.
        costs: Costs that must all stay within 1.
        fixed: Layers that must stay.
        layers: The number of layers to keep, if fixed.
    """
    found: list[tuple[float, float, list[Kept | None]]] = []
    count = len(ranking.layers)
    removable = ranking.removes_layers
    counts = (
        [layers] if layers is not None else range(max(1, len(fixed)), count + 1) if removable else [count]
    )
    lowest = np.inf
    for kept in ranking.layers[0].options:
        if not kept.heads or not kept.neurons:
            continue
        worth = [one.importance(kept) for one in ranking.layers]
        order = sorted(range(count), key=lambda index: (index not in fixed, -worth[index], index))
        for left in counts:
            cost = max(cost.constant + left * cost.layer(kept.heads, kept.neurons) for cost in costs)
            lowest = min(lowest, cost)
            if cost <= 1:
                stay = set(order[:left])
                chosen = [kept if index in stay else None for index in range(count)]
                found.append((cost, sum(worth[index] for index in stay), chosen))
    if not found:
        raise _too_small(lowest)
    tight = [one for one in found if one[0] >= TIGHT]
    return max(tight or found, key=lambda one: one[1])[2]


def fit_freely(ranking: Ranking, costs: Sequence[Cost]) -> list[Kept]:
    """Choose each layer's heads and neurons for the most importance within the costs: a knapsack over layers.

    The knapsack is filled by the mean of the costs, in steps of a few ten-thousandths. If the largest cost is then
    above 1, the knapsack is filled again with a smaller budget.

    Args:
        ranking: The units by importance.
        costs: Costs that must all stay within 1.
    """
    own = [_useful(layer, costs) for layer in ranking.layers]
    constant = np.array([cost.constant for cost in costs])
    least = constant + sum(layer.costs[layer.costs.mean(axis=1).argmin()] for layer in own)
    low, high = 0.0, 1.0 - constant.mean()
    best: list[int] | None = None
    for _ in range(SHRINKING if len(costs) > 1 else 1):
        room = high if best is None and low == 0.0 else (low + high) / 2
        chosen = _knapsack(own, room)
        fits = chosen is not None and _total(own, chosen, constant).max() <= 1
        if fits:
            best, low = chosen, room
        else:
            high = room
        if fits and room >= 1.0 - constant.mean():
            break
        if not fits and low == 0.0:
            low = max(0.0, float(least.mean() - constant.mean()))
    if best is None:
        raise _too_small(float(least.max()))
    return [layer.options[index] for layer, index in zip(own, best, strict=True)]


@dataclass(frozen=True)
class _Useful:
    """The sizes of a layer that no cheaper size beats in importance, cheapest first."""

    options: list[Kept]
    worth: np.ndarray
    costs: np.ndarray


def _useful(layer: LayerRanking, costs: Sequence[Cost]) -> _Useful:
    worth = np.array([layer.importance(kept) for kept in layer.options])
    price = np.array([[cost.layer(kept.heads, kept.neurons) for cost in costs] for kept in layer.options])
    order = np.lexsort((-worth, price.mean(axis=1)))
    best = np.maximum.accumulate(worth[order])
    rising = np.concatenate([[True], best[1:] > best[:-1]])
    left = order[rising]
    return _Useful([layer.options[index] for index in left], worth[left], price[left])


def _total(own: list[_Useful], chosen: list[int], constant: np.ndarray) -> np.ndarray:
    return np.asarray(constant + sum(layer.costs[index] for layer, index in zip(own, chosen, strict=True)))


def _knapsack(own: list[_Useful], room: float) -> list[int] | None:
    """Return the option of each layer that maximises total importance within a mean cost; None if nothing fits."""
    if room <= 0:
        return None
    values = np.full(STEPS + 1, -np.inf)
    values[0] = 0.0
    taken = []
    for layer in own:
        steps = np.ceil(layer.costs.mean(axis=1) / room * STEPS - 1e-9).astype(int)
        new, pick = np.full(STEPS + 1, -np.inf), np.zeros(STEPS + 1, dtype=np.int32)
        for index, step in enumerate(steps):
            if step > STEPS:
                break
            step = max(int(step), 0)
            reached = values[: STEPS + 1 - step] + layer.worth[index]
            better = reached > new[step:]
            new[step:][better] = reached[better]
            pick[step:][better] = index
        values = new
        taken.append((pick, steps))
    if not np.isfinite(values).any():
        return None
    place, chosen = int(np.argmax(values)), []
    for pick, steps in reversed(taken):
        chosen.append(int(pick[place]))
        place -= max(int(steps[chosen[-1]]), 0)
    return chosen[::-1]


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
        kept[group.name] = torch.zeros(group.shape, dtype=torch.bool)
        kept[group.name][scores[group.name].sort(descending=True, stable=True).indices[:count]] = True
    return Mask.from_bools(scores.units, kept)


def _too_small(lowest: float) -> TombolaError:
    return TombolaError(
        f"the smallest model that these units allow takes {lowest:.2f} times what draw allows it: ask for less, or let "
        "more units go (search.units: head+neuron)"
    )
