"""A plan: everything that a command is going to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tombola.foundations.caching import Cache, run_cache, sharing
from tombola.foundations.garbage import no_garbage_collection
from tombola.pipeline.planner import CellPlan, plan_cell
from tombola.recipe.cell import Cell
from tombola.recipe.claims import Claim
from tombola.recipe.reading import Raw
from tombola.store.stage import Stage, topological_order


@dataclass(frozen=True)
class Plan:
    """The cells of a run.

    Attributes:
        name: The name of the run in tables and folders.
        about: A sentence for the reader.
        recipe: The recipe or study, overrides included.
        cells: The plan of each cell of the grid.
        cache: The files read during planning, so that running does not read them again.
        claims: The claims to test on the results.
    """

    name: str
    about: str
    recipe: Raw = field(repr=False)
    cells: list[CellPlan] = field(repr=False)
    cache: Cache = field(repr=False)
    claims: Mapping[str, Claim] = field(default_factory=dict, repr=False)

    @cached_property
    def stages(self) -> list[Stage[Any]]:
        """The stages of all cells, each once, in an order in which they can run."""
        return topological_order(stage for cell in self.cells for stage in cell.ends())


@no_garbage_collection()
def plan_cells(
    name: str, about: str, recipe: Raw, cells: Iterable[Cell], claims: Mapping[str, Claim]
) -> Plan:
    """Plan every cell of a grid."""
    with run_cache() as cache, sharing():
        plan = Plan(name, about, recipe, [plan_cell(cell) for cell in cells], cache, claims)
        for stage in plan.stages:  # computed here, where files are read once
            stage.training_steps()  # raises if a step or warm-up lies beyond the end of its training
    return plan
