"""One point of a recipe's grid, and the recipe that gives it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tombola.recipe.drawing import AMOUNTS
from tombola.recipe.reading import Raw
from tombola.recipe.recipe import Recipe
from tombola.training.settings import TrainSettings


@dataclass(frozen=True)
class Cell:
    """One point of the grid: a whole recipe, the variant it belongs to, and its value on each axis."""

    variant: str
    axes: dict[str, Any]
    recipe: Recipe
    source: Recipe | None = None
    """The recipe for the task that the mask is searched on, if that is another task."""

    @property
    def label(self) -> str:
        """A name that is unique in the grid."""
        parts = [f"{name.rsplit('.', 1)[-1]}-{value}" for name, value in self.axes.items()]
        return "_".join([self.variant, *parts])

    def raw(self) -> Raw:
        """Return the recipe of this cell alone, without defaults, except those that would be inherited otherwise."""
        raw = self.recipe.model_dump(mode="json", exclude_defaults=True)
        train = raw.get("train", {})
        if differs := _differing_defaults(self.recipe.retrain, raw.get("retrain"), train):
            raw["retrain"] = {**differs, **raw.get("retrain", {})}
        search = raw.get("search", {})
        if differs := _differing_defaults(
            self.recipe.trainings.get("search.train"), search.get("train"), train
        ):
            raw["search"] = {**search, "train": {**differs, **search.get("train", {})}}
        if self.source is not None:
            raw["per_task"] = {self.source.task: _changes(self.recipe, self.source)}
        return raw


def _changes(recipe: Recipe, source: Recipe) -> Raw:
    """Return the `per_task` settings that lead from a recipe to that of the task on which its mask is searched."""
    differing = {
        name
        for name in ("seed", "bias", "defend", "search")
        if getattr(source, name) != getattr(recipe, name)
    }
    changes = source.model_dump(mode="json", include={"pooler", "train", "data", *differing})
    if "search" not in differing and (searching := source.trainings.get("search.train")) is not None:
        changes["search"] = {"train": searching.model_dump(mode="json")}
    own, usual = source.draw.model_dump(mode="json"), recipe.draw.model_dump(mode="json")
    if draw := {name: value for name, value in own.items() if value != usual[name]}:
        instead = any(own[name] is not None for name in AMOUNTS if name != "sparsity")
        changes["draw"] = {**draw, "sparsity": None} if instead else draw
    return changes


def _differing_defaults(settings: TrainSettings | None, raw: Raw | None, train: Raw) -> Raw:
    """Return the defaults of a training, missing in its raw form, where the recipe's `train` has other values."""
    if settings is None:
        return {}
    return settings.model_dump(mode="json", include=set(train) - set(raw or {}))
