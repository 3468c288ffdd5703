"""Short ways to plan and run stages in tests."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.world import World
from tombola.pipeline.engines import Local
from tombola.pipeline.planner import CellPlan, plan_cell
from tombola.pipeline.watching import Outcome, Watcher
from tombola.recipe.grid import expand
from tombola.store.stage import Stage, Workspace, topological_order
from tombola.store.store import Store


def plans(world: World, **changes: Any) -> list[CellPlan]:
    """The plans of a tiny recipe's cells."""
    return [plan_cell(cell) for cell in expand(world.recipe(**changes))]


def stages(world: World, **changes: Any) -> list[Stage[Any]]:
    """All stages of a tiny recipe, each once."""
    return topological_order(stage for plan in plans(world, **changes) for stage in plan.ends())


def execute(ends: Iterable[Stage[Any]], store: Store) -> Outcome:
    """Run some stages and all that they need in this process."""
    return Local().run(topological_order(ends), store, Watcher(), keep_going=False)


def workspace(store: Store, folder: Path = Path()) -> Workspace:
    """A workspace that reads from a store."""
    return Workspace(folder, store, lambda *_: None)
