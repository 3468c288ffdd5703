"""Studies: several recipes, and grids over them, planned as one graph of stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tombola.foundations.settings import checked
from tombola.pipeline.engines import Engine, Local
from tombola.pipeline.plan import Plan, plan_cells
from tombola.recipe.study import StudyRecipe, load_study, study_cells, study_claims


class StudySettings(StudyRecipe):
    """A study, and the engine that runs it."""

    engine: Engine = Local()


def read_study(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any
) -> StudySettings:
    """Read a study or a recipe, and apply overrides to every recipe in it."""
    return checked(StudySettings, load_study(source, overrides, **settings))


def plan_study(settings: StudySettings) -> Plan:
    """Plan the cells of a study and the stages that they share."""
    raw = settings.model_dump(mode="json", exclude_defaults=True)
    cells = study_cells(settings)
    return plan_cells(settings.name, settings.about, raw, cells, study_claims(settings, cells))
