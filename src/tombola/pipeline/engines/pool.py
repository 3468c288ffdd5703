"""Worker processes on this machine. A dead worker is replaced, and its stage is given to another."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self

from tombola.foundations.caching import run_cache
from tombola.foundations.hardware.threads import PATIENT, using_threads
from tombola.foundations.plugins import Plugin, adopt, loaded_plugins
from tombola.pipeline.engines.schedule import Schedule
from tombola.pipeline.engines.work import attempt
from tombola.pipeline.watching import Failure
from tombola.store.stage import Stage
from tombola.store.store import Store

logger = logging.getLogger(__name__)

_SPAWN = multiprocessing.get_context("spawn")  # a forked process would inherit torch's threads and locks


@dataclass
class Worker:
    """A process, the connection to it, and its current stage."""

    process: BaseProcess
    line: Connection
    stage: Stage[Any] | None = None


class Pool:
    """Workers that run one stage at a time each, and share the machine's GPUs.

    Every worker uses as many threads as a single process would, since the number of threads affects rounding.
    """

    def __init__(self, size: int, threads: int, store: Store) -> None:
        self.size, self.threads, self.address = size, threads, store.address
        self.workers: list[Worker] = []
        self.started = 0
        self.deaths: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()

    def run(self, schedule: Schedule, retries: int, keep_going: bool) -> None:
        """Distribute stages until none is left. A stage whose workers died too often counts as failed."""
        while not schedule.over:
            self._assign_ready(schedule)
            for line in wait([worker.line for worker in self.workers]):
                worker = next(candidate for candidate in self.workers if candidate.line is line)
                try:
                    progress, reason = worker.line.recv()
                except (EOFError, OSError):
                    failure = self._remove_dead(worker, schedule, retries)
                else:
                    assert worker.stage is not None, "only a worker with a stage reports"
                    if progress is not None:
                        schedule.watcher.progressed(worker.stage, *progress)
                        continue
                    failure = schedule.end(worker.stage, reason)
                    worker.stage = None
                if failure is not None and not keep_going:
                    raise failure.error()

    def _assign_ready(self, schedule: Schedule) -> None:
        while True:
            free = next((worker for worker in self.workers if worker.stage is None), None)
            if free is None and len(self.workers) == self.size:
                return
            if (stage := schedule.take()) is None:
                return
            self._send(free or self._start(), stage)

    def _start(self) -> Worker:
        connection, of_worker = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=_serve,
            args=(of_worker, self.address, self.threads, _device(self.started), loaded_plugins()),
            daemon=True,
        )
        with _environment(PATIENT):
            process.start()
        of_worker.close()
        self.started += 1
        self.workers.append(Worker(process, connection))
        return self.workers[-1]

    def _send(self, worker: Worker, stage: Stage[Any]) -> None:
        """Send a stage to a worker. If the worker died while idle, reading from it will reveal that."""
        worker.stage = stage
        with suppress(OSError):
            worker.line.send(stage)

    def _remove_dead(self, worker: Worker, schedule: Schedule, retries: int) -> Failure | None:
        """Remove a dead worker, and give its stage, if any, to another, unless it has cost too many workers."""
        worker.process.join()
        self.workers.remove(worker)
        stage = worker.stage
        if stage is None:
            return None
        self.deaths[stage.key] = times = self.deaths.get(stage.key, 0) + 1
        death = f"its worker died (exit code {worker.process.exitcode})"
        if times > retries:
            return schedule.end(stage, death if times == 1 else f"{death} in each of {times} attempts")
        logger.warning("%s: %s, so another one resumes it", stage.label, death)
        self._send(self._start(), stage)
        return None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a process started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _device(index: int) -> str | None:
    """Return the GPU of a worker, if there are any."""
    import torch

    count = torch.cuda.device_count()
    return str(index % count) if count else None


def _serve(
    line: Connection, address: str, threads: int, device: str | None, plugins: Iterable[Plugin]
) -> None:
    """Run stages as they arrive, until the connection closes, as it does if the main process is killed."""
    # Ctrl-C reaches the whole process group; the main process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    adopt(plugins)
    store = Store(address)

    def send(progress: tuple[int, int, dict[str, float]] | None, reason: str | None) -> None:
        try:
            line.send((progress, reason))
        except OSError:
            sys.exit()  # unlike an error, this is not logged as the stage's failure

    def progress(step: int, steps: int, figures: Mapping[str, float]) -> None:
        send((step, steps, dict(figures)), None)

    with using_threads(threads), run_cache():
        while True:
            try:
                stage = line.recv()
            except (EOFError, OSError):
                return
            send(None, attempt(stage, store, progress, capture=True))
