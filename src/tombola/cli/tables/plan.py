"""The table of a dry run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tombola.cli.forecast import roughly
from tombola.cli.tables.layout import Column, Grid

if TYPE_CHECKING:
    from tombola.pipeline.costs import StageCosts
    from tombola.pipeline.plan import Plan


def plan_table(plan: Plan, costs: Sequence[StageCosts]) -> Grid:
    """Return a table of the stages by kind: how many are needed, shared, finished and left, and their cost."""
    count = len(plan.cells)
    return Grid(
        f"{plan.name}: {count} {'cell' if count == 1 else 'cells'}",
        [Column("stage", [cost.kind for cost in costs], "left")],
        [
            Column("requested", [f"{cost.asked:,}" for cost in costs]),
            Column("shared", [f"{cost.asked - cost.stages:,}" for cost in costs]),
            Column("finished", [f"{cost.finished:,}" for cost in costs]),
            Column("to run", [f"{cost.stages - cost.finished:,}" for cost in costs]),
            Column("training\nsteps", [f"{cost.steps:,}" if cost.asked_steps else "" for cost in costs]),
            Column("estimated", [_time(cost) for cost in costs]),
        ],
    )


def _time(cost: StageCosts) -> str:
    if cost.seconds is None:
        return "unknown"
    more = "more than " if cost.without_attacks else ""
    return f"{more}{roughly(cost.seconds)}" if cost.seconds else ""
