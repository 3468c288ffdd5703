"""Draw a mask from scores: remove an exact number of units, lowest scores first, without sorting."""

from collections.abc import Mapping
from functools import reduce
from typing import get_args

import torch

from tombola.errors import TombolaError, UnknownName
from tombola.masks.bits import Bits
from tombola.masks.check import check_same
from tombola.masks.in_matrices import draw_in_matrices
from tombola.masks.mask import Mask
from tombola.masks.names import Scope
from tombola.masks.patterns import NofM, Pattern, parse_pattern
from tombola.masks.scores import Scores
from tombola.masks.select import RankedGroup, highest, keep_highest_checked
from tombola.masks.shares import removals
from tombola.masks.units import Units


def draw(
    scores: Scores,
    sparsity: float | None = None,
    *,
    remove: int | None = None,
    scope: Scope = "global",
    within: Mask | None = None,
    protect: Mask | None = None,
    pattern: Pattern | str | None = None,
) -> Mask:
    """Return the mask that removes exactly the requested number of lowest-scoring units.

    Among equal scores, later units are removed first.

    Args:
        scores: A score for every unit.
        sparsity: The fraction of units to remove. Give either this or `remove`.
        remove: The number of units to remove.
        scope: "global" ranks all units together; "local" removes the same fraction of every group, "row" of every
            output row of a matrix.
        within: A mask whose removed units stay removed and count towards the total, so that successive masks are
            nested.
        protect: A mask whose kept units are never removed.
        pattern: "2:4" keeps 2 of every 4 weights along the inputs of a matrix and replaces the sparsity; "16x16"
            removes whole blocks.
    """
    if scope not in get_args(Scope):
        raise UnknownName("scope", scope, get_args(Scope))
    for mask in (within, protect):
        if mask is not None:
            check_same(scores.units, mask.units)
    if pattern is not None or scope == "row":
        parsed = _pattern(pattern)
        share = _share_of(parsed, sparsity, remove, scope)
        return draw_in_matrices(scores, share, scope, parsed, within, protect)
    kept: dict[str, Bits] = {}
    for names, count in _quotas(scores, sparsity, remove, scope):
        kept |= _draw_from(scores, names, count, within, protect)
    return Mask(scores.units, kept)


def draw_counts(
    scores: Scores, counts: Mapping[str, int], within: Mask | None = None, *, min_heads: int = 0
) -> Mask:
    """Return the mask that removes the given number of lowest-scoring units of each kind, ranked separately.

    Args:
        scores: A score for every unit.
        counts: How many units of each kind to remove, such as `{"head": 28, "ffn": 2}`; kinds not listed lose none.
        within: A mask whose removed units stay removed.
        min_heads: How many heads each layer keeps: those with the highest scores.
    """
    drawn = []
    for kind in scores.units.kinds:
        units = scores.units.only(kind)
        of_kind = Scores(units, {name: scores[name] for name in units.by_name})
        inside = Mask(units, within.bits) if within is not None else None
        protected = None
        if kind == "head" and min_heads:
            kept = {name: highest(values, min_heads) for name, values in of_kind.items()}
            protected = Mask.from_bools(units, kept)
        drawn.append(draw(of_kind, remove=counts.get(kind, 0), within=inside, protect=protected))
    return reduce(Mask.join, drawn)


def random_scores(units: Units, seed: int) -> Scores:
    """Return uniformly random scores.

    Args:
        units: The units to score.
        seed: The random seed.
    """
    generator = torch.Generator().manual_seed(seed)
    return Scores(units, {group.name: torch.rand(group.shape, generator=generator) for group in units.groups})


def random_like(mask: Mask, seed: int, *, min_heads: int | None = None) -> Mask:
    """Return a mask that removes as many units of each kind as another, drawn uniformly without replacement.

    Args:
        mask: The mask whose counts to match.
        seed: The random seed.
        min_heads: How many heads each layer keeps; by default one, if the mask keeps a head in each layer, else none.
    """
    counts = {kind: Mask(mask.units.only(kind), mask.bits).removed for kind in mask.units.kinds}
    if min_heads is None:
        min_heads = int(
            all(mask.bits[group.name].any() for group in mask.units.groups if group.kind == "head")
        )
    return draw_counts(random_scores(mask.units, seed), counts, min_heads=min_heads)


def _pattern(pattern: Pattern | str | None) -> Pattern | None:
    if not isinstance(pattern, str):
        return pattern
    try:
        return parse_pattern(pattern)
    except ValueError as error:
        raise TombolaError(f"pattern {error}.") from None


def _share_of(pattern: Pattern | None, sparsity: float | None, remove: int | None, scope: Scope) -> float:
    """Return the fraction to remove from every row, group or set of blocks."""
    if isinstance(pattern, NofM):
        if remove is not None or (sparsity is not None and abs(sparsity - pattern.sparsity) > 1e-9):
            raise TombolaError(
                f"pattern {pattern} removes {pattern.sparsity:.4g} of the weights: leave out the sparsity or count."
            )
        return pattern.sparsity
    if sparsity is None or remove is not None:
        what = f"pattern {pattern}" if pattern else 'scope "row"'
        raise TombolaError(f"{what} removes a share: give a sparsity, not a count.")
    _check_sparsity(sparsity)
    return sparsity


def _check_sparsity(sparsity: float) -> None:
    if not 0.0 <= sparsity <= 1.0:
        raise TombolaError(f"a sparsity must be between 0 and 1, not {sparsity}.")


def _quotas(
    scores: Scores, sparsity: float | None, remove: int | None, scope: Scope
) -> list[tuple[list[str], int]]:
    """Return the groups to rank together, each set with the number of units to remove."""
    if sparsity is not None and remove is None:
        _check_sparsity(sparsity)
        if scope == "global":
            return [(list(scores), removals(sparsity, scores.units.count))]
        return [([group.name], removals(sparsity, group.count)) for group in scores.units.groups]
    if remove is not None and sparsity is None:
        if scope == "local":
            raise TombolaError('scope "local" removes a share of every group: give a sparsity, not a count.')
        return [(list(scores), remove)]
    raise TombolaError("draw takes either a sparsity or a number of units to remove.")


def _draw_from(
    scores: Scores, names: list[str], remove: int, within: Mask | None, protect: Mask | None
) -> dict[str, Bits]:
    """Rank some groups together and remove `remove` of their units."""
    groups = [
        RankedGroup(
            name,
            scores.stored[name],
            absolute=scores.absolute,
            within=within.bits[name] if within is not None else None,
            protected=protect.bits[name] if protect is not None else None,
        )
        for name in names
    ]
    place = names[0] if len(names) == 1 else "the model"
    return keep_highest_checked(groups, remove, f"units of {place}")
