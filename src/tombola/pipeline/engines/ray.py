"""The engine for many machines: an existing Ray cluster, or one on this machine alone.

Workers open the store by its address, so it must be a folder that all machines share, or a URL.
"""

import logging
import pickle
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import Field

from tombola.errors import TombolaError
from tombola.foundations.caching import run_cache
from tombola.foundations.hardware.threads import PATIENT, threads_of, using_threads
from tombola.foundations.plugins import Plugin, adopt, loaded_plugins
from tombola.foundations.settings import Kind, Settings
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.engines.work import attempt
from tombola.pipeline.watching import Outcome, Watcher
from tombola.store.stage import Stage
from tombola.store.stage import stages as stage_kinds
from tombola.store.store import Store


class Resources(Settings):
    """The resources of a stage."""

    cpus: float = Field(default=1, ge=0, description="processors")
    gpus: float = Field(default=0, ge=0, description="GPUs, or a share of one")


class Ray(Kind):
    """Settings of the Ray engine."""

    kind: Literal["ray"] = "ray"
    address: str | None = Field(
        default=None, description="address of a cluster, or auto; by default one is started on this machine"
    )
    workers: int | None = Field(
        default=None, gt=0, description="processors of a cluster started on this machine"
    )
    retries: int = Field(
        default=3, ge=0, description="how often a stage is restarted after its worker was lost"
    )
    threads: int | None = Field(
        default=None,
        gt=0,
        description="threads of every stage, on every machine; by default PyTorch's number on this machine",
    )
    resources: Resources = Field(default=Resources(), description="resources of each stage")
    by_kind: dict[str, Resources] = Field(
        default={}, description="resources of certain kinds of stage, e.g. train: {gpus: 1}"
    )

    def run(
        self, stages: Sequence[Stage[Any]], store: Store, watcher: Watcher, keep_going: bool = True
    ) -> Outcome:
        """Run the unfinished stages. A lost worker's stage resumes elsewhere from its last checkpoint."""
        for kind in self.by_kind:
            stage_kinds[kind]
        schedule = Schedule(stages, store, watcher)
        if schedule.over:
            return schedule.outcome
        ray, started = self._connect()
        try:
            self._run(ray, schedule, store, keep_going)
        finally:
            if started:
                ray.shutdown()
        return schedule.outcome

    def _connect(self) -> tuple[Any, bool]:
        """Return Ray, and whether this engine has connected to it and so must disconnect."""
        try:
            import ray
        except ImportError:
            raise TombolaError("the engine ray is not installed: pip install 'tombola[ray]'") from None
        if ray.is_initialized():
            return ray, False
        local: dict[str, Any] = {}
        if self.address is None:
            local = {"num_cpus": self.workers, "include_dashboard": False}
        try:
            ray.init(
                address=self.address or "local", log_to_driver=False, logging_level=logging.ERROR, **local
            )
        except (ConnectionError, ValueError) as error:
            raise TombolaError(
                f"engine.address: no Ray cluster at {self.address!r} ({error}); start one with `ray start --head`"
            ) from None
        return ray, True

    def _run(self, ray: Any, schedule: Schedule, store: Store, keep_going: bool) -> None:
        remote = ray.remote(_attempt)
        running: dict[Any, Stage[Any]] = {}
        plugins, threads = loaded_plugins(), threads_of(self.threads)
        try:
            while not schedule.over:
                while stage := schedule.take():
                    needs = self.by_kind.get(stage.kind, self.resources)
                    attempt_remotely = remote.options(
                        name=stage.label,
                        num_cpus=needs.cpus,
                        num_gpus=needs.gpus,
                        max_retries=self.retries,
                        runtime_env={"env_vars": dict(PATIENT)},
                    ).remote
                    task = attempt_remotely(pickle.dumps(stage), store.address, plugins, threads)
                    running[task] = stage
                (done,), _ = ray.wait(list(running))
                failure = schedule.end(running.pop(done), _reason(ray, done))
                if failure is not None and not keep_going:
                    raise failure.error()
        finally:
            # After a failure or Ctrl-C. A cluster that was there before would go on with them.
            for task in running:
                ray.cancel(task, force=True)


def _attempt(stage: bytes, address: str, plugins: Iterable[Plugin], threads: int) -> str | None:
    adopt(plugins)
    with using_threads(threads), run_cache():
        return attempt(pickle.loads(stage), Store(address), lambda step, steps, figures: None, capture=True)


def _reason(ray: Any, done: Any) -> str | None:
    try:
        reason: str | None = ray.get(done)
        return reason
    except ray.exceptions.RayError as error:
        return f"Ray lost it: {str(error).strip().splitlines()[0]}"
