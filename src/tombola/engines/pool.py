"""Worker processes on this machine. One that dies is replaced, and another takes its stage."""

import multiprocessing
import os
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Self

from tombola.engines.schedule import Schedule
from tombola.engines.work import attempt, home
from tombola.once import reading_once
from tombola.store import Stage, Store

_SPAWN = multiprocessing.get_context("spawn")  # a forked process inherits threads and locks of torch


@dataclass
class Worker:
    """A process, the line to it, and the stage that it has."""

    process: BaseProcess
    line: Connection
    stage: Stage | None = None


class Pool:
    """Workers that each have one stage at a time, and a share of the machine's threads and GPUs."""

    def __init__(self, size: int, threads: int, store: Store) -> None:
        self.size, self.threads, self.address = size, threads, store.address
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()

    def run(self, schedule: Schedule, retries: int) -> None:
        """Hand out stages until none is left. A stage whose workers died too often has failed."""
        deaths: dict[str, int] = {}
        while not schedule.over:
            self._hand_out(schedule)
            busy = [worker for worker in self.workers if worker.stage]
            for ready in wait([worker.line for worker in busy]):
                worker = next(one for one in busy if one.line is ready)
                assert worker.stage is not None
                try:
                    step, reason = worker.line.recv()
                except (EOFError, ConnectionResetError):
                    self._replace(worker, schedule, deaths, retries)
                    continue
                if step is not None:
                    schedule.watcher.progressed(worker.stage, *step)
                else:
                    schedule.end(worker.stage, reason)
                    worker.stage = None

    def _hand_out(self, schedule: Schedule) -> None:
        for index in range(self.size):
            free = next((worker for worker in self.workers if worker.stage is None), None)
            if free is None and len(self.workers) == self.size:
                return
            if (stage := schedule.take()) is None:
                return
            self._give(free or self._start(index), stage)

    def _start(self, index: int) -> Worker:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=_serve, args=(theirs, self.address, self.threads, _device(index)), daemon=True
        )
        process.start()
        theirs.close()
        self.workers.append(Worker(process, ours))
        return self.workers[-1]

    def _give(self, worker: Worker, stage: Stage) -> None:
        worker.stage = stage
        worker.line.send((stage, home(stage)))

    def _replace(self, worker: Worker, schedule: Schedule, deaths: dict[str, int], retries: int) -> None:
        stage = worker.stage
        assert stage is not None
        worker.process.join()
        self.workers.remove(worker)
        deaths[stage.key] = deaths.get(stage.key, 0) + 1
        if deaths[stage.key] > retries:
            code = worker.process.exitcode
            schedule.end(stage, f"its worker died (exit code {code}) in each of {deaths[stage.key]} attempts")
        else:
            self._give(self._start(len(self.workers)), stage)


def _device(index: int) -> str | None:
    """The GPU of a worker, if there are any."""
    import torch

    count = torch.cuda.device_count()
    return str(index % count) if count else None


def _serve(line: Connection, address: str, threads: int, device: str | None) -> None:
    """Run stages as they come down the line, until the other end is gone."""
    import torch

    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    torch.set_num_threads(threads)
    store = Store(address)
    with reading_once():
        while True:
            try:
                stage, module = line.recv()
            except EOFError:
                return
            import_module(module)
            reason = attempt(stage, store, lambda step, steps: line.send(((step, steps), None)), capture=True)
            line.send((None, reason))
