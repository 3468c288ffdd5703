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
    plan: Plan,
    store: Store,
    result: Path,
    *,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
    keep_going: bool = False,
) -> Outcome:
    """Run every unfinished stage of a plan.

    Args:
        plan: The plan to run.
        store: The store of finished stages.
        result: The file of the result. While it exists, the store keeps the stages.
        engine: The engine that runs the stages; by default this process.
        watcher: Receives progress events.
        keep_going: Continue when a stage fails, without the stages that need it. Otherwise its error is raised.
    """
    with run_cache(plan.cache):
        return run_stages(plan.stages, store, result, engine=engine, watcher=watcher, keep_going=keep_going)


def run_stages(
    stages: Sequence[Stage[Any]],
    store: Store,
    result: Path,
    *,
    engine: Local | Ray | None = None,
    watcher: Watcher | None = None,
    keep_going: bool = False,
) -> Outcome:
    """Run every unfinished one of some stages; they come in an order in which they can run.

    Args:
        stages: The stages.
        store: As for `run_plan`, like the other arguments.
        result: The file of the result.
        engine: The engine.
        watcher: Receives progress events.
        keep_going: Continue when a stage fails.
    """
    watcher = watcher if watcher is not None and is_main() else Watcher()
    kept = running(store, result, stages) if is_main() else nullcontext()
    with kept, closing(watcher):
        return (engine or Local()).run(stages, store, watcher, keep_going)
