"""The sizes of layers that keep the most importance within a cost, each layer with a size of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tombola.masks.fitting import EXACT, Cost, Kept, LayerRanking, OutOfReach, Ranking

STEPS = 5000
"""The number of steps that the knapsack divides the budget into."""
SHRINKING = 12
"""Bisection steps towards the largest budget that satisfies all costs."""


def fit_freely(ranking: Ranking, costs: Sequence[Cost]) -> list[Kept]:
    """Choose each layer's heads and neurons for the most importance within the costs: a knapsack over layers.

    The knapsack is filled by the mean of the costs, in steps of a few ten-thousandths. If the largest cost is then
    above 1, the knapsack is filled again with a smaller budget. If only the smallest layers fit, too tightly for the
    steps, they are chosen.

    Args:
        ranking: The units by importance.
        costs: Costs that must all stay within 1.
    """
    useful = [_useful(layer, costs) for layer in ranking.layers]
    constant = np.array([cost.constant for cost in costs])
    smallest = [int(layer.costs.mean(axis=1).argmin()) for layer in useful]
    least = _total(useful, smallest, constant)
    high = room = 1.0 - float(constant.mean())
    low = max(0.0, float(least.mean() - constant.mean()))
    best: list[int] | None = None
    for _ in range(SHRINKING if len(costs) > 1 else 1):
        chosen = _knapsack(useful, room)
        if chosen is None or _total(useful, chosen, constant).max() > EXACT:
            high = room
        else:
            best, low = chosen, room
            if room == high:
                break
        room = (low + high) / 2
    if best is None and least.max() > EXACT:
        raise OutOfReach(float(least.max()))
    best = smallest if best is None else best
    return [layer.options[index] for layer, index in zip(useful, best, strict=True)]


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


def _total(useful: list[_Useful], chosen: list[int], constant: np.ndarray) -> np.ndarray:
    return np.asarray(constant + sum(layer.costs[index] for layer, index in zip(useful, chosen, strict=True)))


def _knapsack(useful: list[_Useful], room: float) -> list[int] | None:
    """Return the option of each layer that maximises total importance within a mean cost; None if nothing fits."""
    if room <= 0:
        return None
    values = np.full(STEPS + 1, -np.inf)
    values[0] = 0.0
    picks = []
    for layer in useful:
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
        picks.append((pick, steps))
    if not np.isfinite(values).any():
        return None
    place, chosen = int(np.argmax(values)), []
    for pick, steps in reversed(picks):
        chosen.append(int(pick[place]))
        place -= max(int(steps[chosen[-1]]), 0)
    return chosen[::-1]
