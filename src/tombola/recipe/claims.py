"""Claims: which variant of a recipe should beat which, where, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from tombola.errors import RecipeError, UnknownName
from tombola.foundations.settings import Settings, checked
from tombola.recipe.cell import Cell
from tombola.tasks.targets import all_targets


class Claim(Settings):
    """The hypothesis that one variant scores higher than another, stated before the run."""

    variant: str = Field(description="variant that is claimed to be better")
    over: str = Field(description="variant that it is compared with")
    on: str | None = Field(
        None, description="data set or attack, as the result names it; null: the first data set"
    )
    at: dict[str, Any] = Field(
        {}, description="axes of the grid with the value to compare at, e.g. {draw.sparsity: 0.5}; empty: all"
    )
    by: float = Field(
        0.0,
        description="smallest gain that counts, in points for accuracies and other shares; a negative one is the loss "
        "that is allowed",
    )


def read_claims(raw: Mapping[str, Any]) -> dict[str, Claim]:
    """Return the claims of a raw recipe by name, without those set to null.

    Raises:
        RecipeError: With the mistakes of all claims.
    """
    section = raw.get("claims") or {}
    if not isinstance(section, dict):
        raise RecipeError("claims: takes a mapping from a name to a claim")
    claims: dict[str, Claim] = {}
    mistakes: list[str] = []
    for name, claim in section.items():
        if claim is None:
            continue
        try:
            claims[str(name)] = checked(Claim, claim, f"claims.{name}")
        except RecipeError as error:
            mistakes += error.mistakes
    if mistakes:
        raise RecipeError(*mistakes)
    return claims


def check_claims(claims: Mapping[str, Claim], cells: Sequence[Cell]) -> None:
    """Raise if a claim names a variant, a grid point, a data set or an attack that the cells do not have."""
    if not claims:
        return
    variants = list(dict.fromkeys(cell.variant for cell in cells))
    axes: dict[str, list[Any]] = {}
    for cell in cells:
        for axis, value in cell.axes.items():
            if axis != "seed" and value not in axes.setdefault(axis, []):
                axes[axis].append(value)
    mistakes = [
        mistake for name, claim in claims.items() for mistake in _mistakes(name, claim, variants, axes)
    ]
    if mistakes:
        raise RecipeError(*mistakes)
    scored = {(cell.recipe.evaluate.on, cell.recipe.task) for cell in cells}
    attacks = {name for cell in cells if cell.recipe.attack for name in cell.recipe.attack.chosen()}
    check_targets(
        claims, [*attacks, *(on for evaluated, task in scored for on in all_targets(evaluated, task))]
    )


def check_targets(claims: Mapping[str, Claim], targets: Iterable[str]) -> None:
    """Raise if a claim names a data set or attack that nothing is scored on."""
    known = list(targets)
    mistakes = [
        str(UnknownName("data set or attack", claim.on, known, where=f"claims.{name}.on"))
        for name, claim in claims.items()
        if claim.on is not None and claim.on not in known
    ]
    if mistakes:
        raise RecipeError(*mistakes)


def _mistakes(name: str, claim: Claim, variants: list[str], axes: dict[str, list[Any]]) -> list[str]:
    where = f"claims.{name}"
    mistakes = [
        f"{UnknownName('variant', variant, variants, where=f'{where}.{key}')} {where}=null drops the claim."
        for key, variant in (("variant", claim.variant), ("over", claim.over))
        if variant not in variants
    ]
    if claim.variant == claim.over:
        mistakes.append(f"{where}: compares {claim.variant} with itself")
    for axis, value in claim.at.items():
        if not axes:
            mistakes.append(f"{where}.at: the recipe has no grid; leave it out")
        elif axis not in axes:
            mistakes.append(str(UnknownName("axis", axis, list(axes), where=f"{where}.at")))
        elif value not in axes[axis]:
            mistakes.append(f"{where}.at.{axis}: the grid has {', '.join(map(str, axes[axis]))}, not {value}")
    return mistakes
