"""The engine that needs nothing: this process, or several on this machine with its cores shared out."""

import os
from typing import Literal

from pydantic import Field

from tombola.engines.outcome import Outcome, Watcher
from tombola.engines.schedule import Schedule
from tombola.engines.work import attempt
from tombola.once import reading_once
from tombola.settings import Kind
from tombola.store import Stage, Store


class Local(Kind):
    """Settings of the local engine."""

    kind: Literal["local"] = "local"
    workers: int = Field(1, gt=0, description="processes; with one, stages run in this very process")
    threads: int | None = Field(None, gt=0, description="of each worker; else the cores are shared out")
    retries: int = Field(2, ge=0, description="how often a stage is given to another worker when one dies")

    def run(self, stages: list[Stage], store: Store, watcher: Watcher) -> Outcome:
        """Run what is not finished yet."""
        schedule = Schedule(stages, store, watcher)
        if self.workers == 1:
            _in_process(schedule, store, watcher)
        elif not schedule.over:
            from tombola.engines.pool import Pool

            threads = self.threads or max(1, (os.cpu_count() or 1) // self.workers)
            with Pool(self.workers, threads, store) as pool:
                pool.run(schedule, self.retries)
        return schedule.outcome


def _in_process(schedule: Schedule, store: Store, watcher: Watcher) -> None:
    with reading_once():
        while stage := schedule.take():

            def progress(step: int, steps: int, stage: Stage = stage) -> None:
                watcher.progressed(stage, step, steps)

            schedule.end(stage, attempt(stage, store, progress, capture=False))
