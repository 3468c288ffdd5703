"""The number of workers does not change a bit: every stage computes with one number of threads, whoever runs it."""

import hashlib
import os
import signal
import threading
import time

import psutil
import pytest
import torch

import tombola
from tests.store.kinds import one
from tombola.foundations.hardware.threads import threads_of
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.engines.pool import Pool
from tombola.pipeline.watching import Watcher
from tombola.store.store import Store

TIMED = ("log.json", "manifest.json", "report.json", "checksums.json")
"""Files that hold times."""


def content(store):
    """A hash of every file of every stage but those that hold times."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.glob("*/*/**/*"))
        if path.is_file() and path.name not in TIMED and path.parts[-2] not in ("roots", "logs")
    }


def test_threads_are_what_the_first_process_has_unless_they_are_chosen(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(Pool, "run", lambda self, *rest: seen.append(self.threads))
    for engine in (Local(workers=2), Local(workers=7), Local(workers=2, threads=3)):
        engine.run(one("test_write", "a").with_inputs(), Store(tmp_path), Watcher())
    own = torch.get_num_threads()
    assert seen == [own, own, 3]
    assert threads_of(None) == own


@pytest.mark.parametrize(("workers", "there"), [(2, 2), (7, 3), (2, 1)])
def test_there_are_never_more_workers_than_cores(tmp_path, monkeypatch, workers, there):
    seen = []
    monkeypatch.setattr(Pool, "run", lambda self, *rest: seen.append(self.size))
    monkeypatch.setattr("tombola.pipeline.engines.local.cores", lambda: there)
    Local(workers=workers).run(one("test_write", "a").with_inputs(), Store(tmp_path), Watcher())
    assert seen == [min(workers, there)]


def test_one_process_uses_the_threads_that_were_chosen_and_gives_them_back(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "tombola.pipeline.engines.local._in_process", lambda *rest: seen.append(torch.get_num_threads())
    )
    before = torch.get_num_threads()
    Local(threads=before + 1).run(one("test_write", "a").with_inputs(), Store(tmp_path), Watcher())
    assert (seen, torch.get_num_threads()) == ([before + 1], before)


@pytest.mark.slow
def test_one_worker_two_and_ray_leave_equal_bytes(world, tmp_path):
    pytest.importorskip("ray")
    recipe = world.recipe(
        seed=[1, 2],
        search={"method": "magnitude"},
        draw={"sparsity": 0.5},
        attack={"recipes": ["deepwordbug"], "n": 8},
        train={"epochs": 2, "learning_rate": 3e-3, "batch_size": 32, "max_length": 16},
    )
    engines = {
        "one": Local(threads=2),
        "two": Local(workers=2, threads=2),
        "ray": Ray(workers=2, threads=2),
    }
    for name, engine in engines.items():
        found = tombola.study(
            recipe, output=tmp_path / name / "out", store=tmp_path / name / "store", engine=engine
        )
        assert found.failures == []
    first, *others = (content(tmp_path / name / "store") for name in engines)
    assert len(first) > 20
    assert all(other == first for other in others)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 2])
def test_the_death_of_a_busy_worker_is_survived(tmp_path, kills):
    """Workers that have a stage are killed from outside, as a machine out of memory does."""
    store = Store(tmp_path)
    stages = [one("test_write", str(number), sleep=2.0) for number in range(4)]
    killed = []

    def kill() -> None:
        while len(killed) < kills:
            busy = [
                child.pid
                for child in psutil.Process().children()
                if child.pid not in killed and "spawn_main" in " ".join(child.cmdline())
            ]
            if busy and list(tmp_path.glob("test_write/*.partial")):
                os.kill(busy[0], signal.SIGKILL)
                killed.append(busy[0])
            time.sleep(0.3)

    thread = threading.Thread(target=kill)
    thread.start()
    outcome = Local(workers=2, threads=1).run(stages, store, Watcher())
    thread.join()
    assert (len(killed), outcome.failures, len(outcome.ran)) == (kills, [], 4)
    assert [store.read(stage) for stage in stages] == ["0", "1", "2", "3"]
