"""Reject draws that would leave nothing of a model, before anything runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tombola.errors import RecipeError, TombolaError
from tombola.foundations.caching import cached_in_run
from tombola.masks.shares import removals, whole_units
from tombola.pipeline.references import DataSource, ModelSource
from tombola.recipe.recipe import Recipe
from tombola.search import SearchSettings
from tombola.search.importance import Importance

if TYPE_CHECKING:
    from tombola.masks import Units

logger = logging.getLogger(__name__)

NEVER_ALL = 0.75
"""A global sparsity below which rounding never removes all units."""


def check_draw(recipe: Recipe, model: ModelSource, data: DataSource) -> None:
    """Reject a draw that removes too many units, with both numbers, and layers that the model does not have."""
    search, draw = recipe.search, recipe.draw
    assert search is not None
    if draw.target is not None:
        return
    structured = search.units != "weight" and (draw.scope == "local" or draw.sparsity >= NEVER_ALL)
    if isinstance(search, Importance):
        structured = "head" in search.units and (draw.sparsity >= 0.5 or search.min_heads > 1)
    if draw.counts is None and search.layers is None and draw.pattern is None and not structured:
        return
    units = _units(model, search.model_copy(update={"biases": False}), data)
    if draw.pattern is not None:
        _check_pattern(draw.pattern, units)
    if draw.counts is not None:
        for kind, count in draw.counts.items():
            _check_count(kind, count, units, search)
    elif isinstance(search, Importance):
        heads = tuple(group.count for group in units.groups if group.kind == "head")
        _warn_of_kept_heads(draw.sparsity, search.min_heads, heads)
    elif structured:
        _check_share(draw.sparsity, draw.scope == "local", units)


def _check_pattern(text: str, units: Units) -> None:
    from tombola.masks.patterns import parse_pattern

    pattern = parse_pattern(text)
    for matrix in units.layout.matrices:
        try:
            pattern.check(matrix.name, matrix.outputs, matrix.inputs)
        except TombolaError as error:
            raise RecipeError(f"draw.{error}") from None


def _check_count(kind: str, count: int, units: Units, search: SearchSettings) -> None:
    groups = [group for group in units.groups if group.kind == kind]
    total, layers = sum(group.count for group in groups), len(groups)
    if kind == "head" and isinstance(search, Importance) and search.min_heads:
        most = sum(max(group.count - search.min_heads, 0) for group in groups)
        reason = f"each of its {layers} layers keeps search.min_heads: {search.min_heads}"
    elif kind == "head":
        most, reason = total - 1, "at least one must remain"
    else:
        most, reason = total, "there are no more"
    if count > most:
        raise RecipeError(
            f"draw.{kind}s: {count} of the model's {total} {kind}s cannot be removed, since {reason}: remove at most "
            f"{most}"
        )


@cached_in_run
def _warn_of_kept_heads(sparsity: float, min_heads: int, heads: tuple[int, ...]) -> None:
    """Warn if the share of heads cannot be reached because every layer keeps some."""
    removed, most = whole_units(sparsity, sum(heads)), sum(max(count - min_heads, 0) for count in heads)
    if removed > most:
        logger.warning(
            "draw.sparsity: %s of the %s heads would be %s, but only %s are removed: each of the %s layers keeps "
            "search.min_heads: %s",
            sparsity, sum(heads), removed, most, len(heads), min_heads,
        )  # fmt: skip


def _check_share(sparsity: float, local: bool, units: Units) -> None:
    for group in units.groups if local else ():
        if removals(sparsity, group.count) == group.count:
            raise RecipeError(
                f"draw.sparsity: {sparsity} of the {group.count} {group.kind}s of {group.name} is all of them, as in "
                "every group of this kind: use a lower sparsity, or draw.scope: global"
            )
    if removals(sparsity, units.count) == units.count:
        raise RecipeError(
            f"draw.sparsity: {sparsity} of {units.count} units ({units.granularity}) is all of them: use a lower "
            "sparsity"
        )


@cached_in_run
def _units(model: ModelSource, search: SearchSettings, data: DataSource) -> Units:
    """Return the units of a model with a head for the data's task, without reading its weights."""
    return search.units_of(model.outline(data.definition))
