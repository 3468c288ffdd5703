"""The first scores of gates: as each gate says, or in the order of the units' importance."""

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from tombola.gates.base import Gate
from tombola.masks import Mask, Scope, Scores, draw
from tombola.masks.pattern_names import implied_sparsity

SPREAD = 1.0
"""How far the most and the least important units lie from the scores that noisy gates start with."""
KNOTS = 4096
"""Quantiles between which places are interpolated."""


def first_scores(
    gate: Gate, ranking: Scores, sparsity: float, scope: Scope, seed: int, pattern: str | None = None
) -> list[tuple[Tensor, float]]:
    """The first scores and the first cut of each group, by a ranking of the units.

    Args:
        gate: The gate, which says what they are.
        ranking: The magnitudes of the units, or other scores of the same scale.
        sparsity: The share of the units that starts shut.
        scope: Whether they are the lowest of all, of each group, or of each output row.
        seed: What a gate that starts at random depends on.
        pattern: What the open ones follow, such as 2:4, where the sparsity is the pattern's.
    """
    open_ = draw_at(ranking, sparsity, scope, pattern)
    generator = torch.Generator().manual_seed(seed)
    return [
        gate.start(ranking[group.name].cpu(), ~open_[group.name], generator) for group in ranking.units.groups
    ]


def draw_at(scores: Scores, sparsity: float, scope: Scope, pattern: str | None) -> Mask:
    """A mask at a sparsity on the way to the one of a pattern, or at it.

    An N:M pattern is whole or not: on the way to it, the same share of every output row is shut.

    Args:
        scores: A score for every unit.
        sparsity: The share that is shut now.
        scope: What is ranked together.
        pattern: What is followed in the end.
    """
    implied = implied_sparsity(pattern) if pattern else None
    if implied is not None and abs(sparsity - implied) > 1e-9:
        return draw(scores, sparsity, scope="row")
    return draw(scores, sparsity, scope=scope, pattern=pattern)


def ordered_scores(
    gate: Gate,
    magnitudes: Scores,
    importance: Scores,
    sparsity: float,
    scope: Scope,
    seed: int,
    pattern: str | None = None,
) -> list[tuple[Tensor, float]]:
    """First scores in the order of the units' importance, with the mean openness that the gate starts with.

    Importance counts per weight, as magnitudes do, so that a head and a neuron can be compared. Units that the gate
    starts alike are spread by their place in that order: the scores of noisy gates by up to ±1, shifted so that the
    mean openness stays; those of other gates to half and up to one and a half times their distance from the cut, on
    the side where they are.

    Args:
        gate: The gate.
        magnitudes: The magnitudes of the units, whose scale the ranking gets.
        importance: The importance of the units.
        sparsity: The share of the units that starts shut: the least important.
        scope: Whether units are compared with all others, or with those of their group.
        seed: What a gate that starts at random depends on.
        pattern: What the open ones follow.
    """
    ranking = _scaled(importance, magnitudes)
    started = first_scores(gate, ranking, sparsity, scope, seed, pattern)
    margins = [scores - cut for scores, cut in started]
    places = _places([ranking[group.name].cpu() for group in ranking.units.groups], scope)
    if gate.noisy:
        margins = _spread(gate, margins, places)
    elif _two_levels(margins):
        margins = [
            margin * torch.where(margin > 0, 0.5 + place, 1.5 - place)
            for margin, place in zip(margins, places, strict=True)
        ]
    if gate.bound is not None:
        margins = [margin.clamp(-gate.bound, gate.bound) for margin in margins]
    return [(margin + cut, cut) for margin, (_, cut) in zip(margins, started, strict=True)]


def _scaled(importance: Scores, magnitudes: Scores) -> Scores:
    """The importance per weight, as large on average as the magnitudes."""
    units = importance.units
    shares = {group.name: importance[group.name].double() / group.unit_weights for group in units.groups}
    total = sum(float(share.sum()) for share in shares.values())
    wanted = sum(float(magnitudes[group.name].sum(dtype=torch.float64)) for group in units.groups)
    factor = wanted / total if total else 1.0
    return Scores(units, {name: share * factor for name, share in shares.items()})


def _places(ranking: list[Tensor], scope: Scope) -> list[Tensor]:
    """The place of each unit, from 0 for the lowest to 1 for the highest; equal units have equal places."""
    if scope != "global":
        return [_place(scores, _knots(scores.numpy().reshape(-1))) for scores in ranking]
    knots = _knots(np.concatenate([scores.numpy().reshape(-1) for scores in ranking]))
    return [_place(scores, knots) for scores in ranking]


def _knots(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the values, each once, and their places."""
    ordered = np.sort(values)
    chosen = np.unique(np.linspace(0, ordered.size - 1, KNOTS).round().astype(np.int64))
    found, first = np.unique(ordered[chosen], return_index=True)
    last = np.append(first[1:], chosen.size) - 1
    return found, (chosen[first] + chosen[last]) / 2 / max(ordered.size - 1, 1)


def _place(scores: Tensor, knots: tuple[np.ndarray, np.ndarray]) -> Tensor:
    return torch.from_numpy(np.interp(scores.numpy(), *knots).astype(np.float32))


def _two_levels(margins: list[Tensor]) -> bool:
    """Whether all open units start alike, and all shut ones: else the gate has put them in order already."""
    sides = [[margin[margin > 0] for margin in margins], [margin[margin <= 0] for margin in margins]]
    return all(
        min(float(one.min()) for one in side if one.numel())
        == max(float(one.max()) for one in side if one.numel())
        for side in sides
        if any(one.numel() for one in side)
    )


def _spread(gate: Gate, margins: list[Tensor], places: list[Tensor]) -> list[Tensor]:
    """Margins up to `SPREAD` higher or lower, by their places, and shifted back to the openness that they had."""
    wanted = _openness(gate, margins)
    spread = [margin + SPREAD * (2 * place - 1) for margin, place in zip(margins, places, strict=True)]
    shift = brentq(
        lambda by: _openness(gate, [margin + by for margin in spread]) - wanted,
        -1.1 * SPREAD,
        1.1 * SPREAD,
        xtol=1e-6,
    )
    return [margin + shift for margin in spread]


def _openness(gate: Gate, margins: list[Tensor]) -> float:
    """The sum over all units of the probability to be open."""
    return float(sum(gate.openness(margin).sum(dtype=torch.float64) for margin in margins))
