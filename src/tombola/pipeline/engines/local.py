"""The local engine: this process, or several on this machine that share its cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from tombola.foundations.caching import run_cache
from tombola.foundations.hardware.machine import cores
from tombola.foundations.hardware.threads import threads_of, using_threads
from tombola.foundations.settings import Kind
from tombola.pipeline.engines.ranks import ranks
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.engines.work import attempt, log_failure, work
from tombola.pipeline.watching import Outcome, Watcher
from tombola.store.stage import Stage
from tombola.store.store import Store


class Local(Kind):
    """Settings of the local engine."""

    kind: Literal["local"] = "local"
    workers: int = Field(
        default=1,
        gt=0,
        description="processes, but no more than there are cores; with one, stages run in this process",
    )
    threads: int | None = Field(
        default=None,
        gt=0,
        description="threads of every stage, however many workers there are; by default PyTorch's own number",
    )
    retries: int = Field(
        default=2, ge=0, description="how often a stage is given to another worker after one died"
    )

    def run(
        self, stages: Sequence[Stage[Any]], store: Store, watcher: Watcher, keep_going: bool = True
    ) -> Outcome:
        """Run the unfinished stages.

        Args:
            stages: All stages, inputs before the stages that need them.
            store: The store of finished stages.
            watcher: Receives progress events.
            keep_going: Continue with the other stages when one fails; otherwise its error is raised, and always under
                `accelerate launch`, since the other processes would wait for the failed stage.
        """
        schedule = Schedule(stages, store, watcher)
        if self.workers == 1:
            with using_threads(self.threads):
                _in_process(schedule, store, watcher, keep_going and ranks() == 1)
        elif not schedule.over:
            from tombola.pipeline.engines.pool import Pool

            with Pool(min(self.workers, cores()), threads_of(self.threads), store) as pool:
                pool.run(schedule, self.retries, keep_going)
        return schedule.outcome


def _in_process(schedule: Schedule, store: Store, watcher: Watcher, keep_going: bool) -> None:
    with run_cache():
        while stage := schedule.take():

            def progress(
                step: int, steps: int, figures: Mapping[str, float], stage: Stage[Any] = stage
            ) -> None:
                watcher.progressed(stage, step, steps, figures)

            if keep_going:
                schedule.end(stage, attempt(stage, store, progress, capture=False))
            else:
                try:
                    work(stage, store, progress)
                except Exception as error:
                    schedule.end(stage, log_failure(stage, store, error))
                    raise
                schedule.end(stage, None)
