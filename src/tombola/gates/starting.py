"""The initial scores of gates: as each gate defines, or in the order of the units' importance."""

from collections.abc import Iterable

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from tombola.gates.base import Gate
from tombola.masks import Mask, Scope, Scores, draw
from tombola.masks.pattern_names import implied_sparsity

SPREAD = 1.0
"""How far the scores of the most and least important units start from the initial score of a noisy gate."""
KNOTS = 4096
"""Number of quantiles between which ranks are interpolated."""


def first_scores(
    gate: Gate, ranking: Scores, sparsity: float, scope: Scope, seed: int, pattern: str | None = None
) -> list[tuple[Tensor, float]]:
    """Return the initial scores and cut of each group, given a ranking of the units.

    Args:
        gate: The gate, which determines the scores.
        ranking: The magnitudes of the units, or other scores on the same scale.
        sparsity: The fraction of units that starts shut.
        scope: Whether these are the lowest of all units, of each group or of each output row.
        seed: The seed of gates with a random start.
        pattern: The pattern of the open units, such as 2:4, if the sparsity is the pattern's own.
    """
    open_ = draw_at(ranking, sparsity, scope, pattern)
    generator = torch.Generator().manual_seed(seed)
    return [
        gate.start(ranking[group.name].cpu(), ~open_[group.name], generator) for group in ranking.units.groups
    ]


def draw_at(scores: Scores, sparsity: float, scope: Scope, pattern: str | None) -> Mask:
    """Draw a mask at a pattern's sparsity, or at an intermediate one.

    At intermediate sparsities an N:M pattern cannot hold, and the same fraction of every output row is shut instead.

    Args:
        scores: A score for every unit.
        sparsity: The fraction to shut.
        scope: Which units to rank together.
        pattern: The final pattern.
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
    """Return initial scores in the order of the units' importance, with the gate's initial mean openness.

    Importance is taken per weight, as for magnitudes, so that a head and a neuron can be compared. Units that the
    gate would start alike are spread by rank: the scores of noisy gates by up to ±1, shifted to preserve the mean
    openness; those of other gates to between 0.5 and 1.5 times their distance from the cut, on the same side.

    Args:
        gate: The gate.
        magnitudes: The magnitudes of the units, to whose scale importance is brought.
        importance: The importance of the units.
        sparsity: The fraction of units, the least important, that starts shut.
        scope: Whether to rank units among all others or within their group.
        seed: The seed of gates with a random start.
        pattern: The pattern of the open units.
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
    """Return the importance per weight, scaled to the mean of the magnitudes."""
    units = importance.units
    shares = {group.name: importance[group.name].double() / group.unit_weights for group in units.groups}
    total = sum(float(share.sum()) for share in shares.values())
    wanted = sum(float(magnitudes[group.name].sum(dtype=torch.float64)) for group in units.groups)
    factor = wanted / total if total else 1.0
    return Scores(units, {name: share * factor for name, share in shares.items()})


def _places(ranking: list[Tensor], scope: Scope) -> list[Tensor]:
    """Return the relative rank of each unit, from 0 (lowest) to 1 (highest); ties share a rank."""
    if scope != "global":
        return [_place(scores, _knots(scores.numpy().reshape(-1))) for scores in ranking]
    knots = _knots(np.concatenate([scores.numpy().reshape(-1) for scores in ranking]))
    return [_place(scores, knots) for scores in ranking]


def _knots(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct quantiles of the values and their ranks."""
    ordered = np.sort(values)
    chosen = np.unique(np.linspace(0, ordered.size - 1, KNOTS).round().astype(np.int64))
    found, first = np.unique(ordered[chosen], return_index=True)
    last = np.append(first[1:], chosen.size) - 1
    return found, (chosen[first] + chosen[last]) / 2 / max(ordered.size - 1, 1)


def _place(scores: Tensor, knots: tuple[np.ndarray, np.ndarray]) -> Tensor:
    return torch.from_numpy(np.interp(scores.numpy(), *knots).astype(np.float32))


def _two_levels(margins: list[Tensor]) -> bool:
    """Return whether all open units start alike, and all shut ones; otherwise the gate has already ordered them."""
    sides = [[margin[margin > 0] for margin in margins], [margin[margin <= 0] for margin in margins]]
    return all(
        min(float(part.min()) for part in side if part.numel())
        == max(float(part.max()) for part in side if part.numel())
        for side in sides
        if any(part.numel() for part in side)
    )


def _spread(gate: Gate, margins: list[Tensor], places: list[Tensor]) -> list[Tensor]:
    """Move margins up or down by up to `SPREAD` by rank, then shift them all to preserve the total openness."""
    wanted = total_openness(gate, margins)
    spread = [margin + SPREAD * (2 * place - 1) for margin, place in zip(margins, places, strict=True)]
    shift = brentq(
        lambda by: total_openness(gate, [margin + by for margin in spread]) - wanted,
        -1.1 * SPREAD,
        1.1 * SPREAD,
        xtol=1e-6,
    )
    return [margin + shift for margin in spread]


def total_openness(gate: Gate, margins: Iterable[Tensor]) -> float:
    """Return the sum over all units of the probability of being open, in 64 bits, which Apple's GPUs do not have."""
    opennesses = (gate.openness(margin) for margin in margins)
    return float(
        sum((open_.cpu() if open_.is_mps else open_).sum(dtype=torch.float64) for open_ in opennesses)
    )
