"""The runner: runs a plan with an engine, for `run`, `study`, `share` and `transfer` alike."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from tombola.foundations.caching import run_cache
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.ranks import is_main
from tombola.pipeline.plan import Plan
from tombola.pipeline.watching import Outcome, Watcher
from tombola.store.roots import running
from tombola.store.stage import Stage
from tombola.store.store import Store


def run_plan(
    plan: Plan | Sequence[Stage[Any]],
    store: Store,
    result: Path,
    *,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
    keep_going: bool = False,
) -> Outcome:
    """Run every unfinished stage of a plan.

    Args:
        plan: The plan to run, or some stages in an order in which they can run.
        store: The store of finished stages.
        result: The file of the result. While it exists, the store keeps the stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
        keep_going: Continue when a stage fails, without the stages that need it. Otherwise its error is raised.
    """
    stages, read_once = (
        (plan.stages, run_cache(plan.cache)) if isinstance(plan, Plan) else (plan, nullcontext())
    )
    watcher = watcher if watcher is not None and is_main() else Watcher()
    kept = running(store, result, stages) if is_main() else nullcontext()
    with read_once, kept, closing(watcher):
        return (engine or Local()).run(stages, store, watcher, keep_going)
