"""The same study on a Ray cluster, one of whose workers is killed in the middle, ends as it does locally."""

import os
import signal
import threading
import time

import psutil
import pytest
from filelock import FileLock

from tests.store.kinds import Fail, Write
from tombola import study
from tombola.errors import TombolaError
from tombola.pipeline.engines import Local, Ray
from tombola.pipeline.watching import Watcher
from tombola.store.store import Store

pytest.importorskip("ray")

WORKER = "ray::"


class Killer(Watcher):
    """Kills the first worker that is seen training."""

    def __init__(self):
        self.killed = threading.Event()
        threading.Thread(target=self._hunt, daemon=True).start()

    def _hunt(self):
        while not self.killed.is_set():
            for process in psutil.Process().children(recursive=True):
                try:
                    at_work = WORKER + "fine-tune" in " ".join(process.cmdline())
                    if at_work and process.cpu_times().user > 0:
                        time.sleep(0.5)
                        os.kill(process.pid, signal.SIGKILL)
                        self.killed.set()
                        return
                except psutil.NoSuchProcess:
                    continue
            time.sleep(0.02)


def scores(found):
    return [(cell.label, cell.scores, cell.mask) for cell in found.cells]


@pytest.mark.slow
def test_a_study_survives_the_loss_of_a_worker(world, tmp_path):
    raw = world.recipe(
        search={"method": "magnitude", "start": "finetuned"},
        draw={"sparsity": 0.5},
        seed=[1, 2],
        variants={"dense": {"search": None}, "omp": {}},
    )
    local = study(raw, engine=Local(), store=tmp_path / "local", output=tmp_path / "a")
    killer = Killer()
    far = study(raw, engine=Ray(workers=2), store=tmp_path / "far", output=tmp_path / "b", watcher=killer)
    assert killer.killed.is_set()
    assert far.failures == []
    assert scores(far) == scores(local)
    assert len(far.cells) == 4


@pytest.mark.slow
def test_a_failure_leaves_no_stage_at_work_on_a_cluster_that_was_there_before(tmp_path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        store, slow = Store(tmp_path), Write(text="slow", sleep=60)
        with pytest.raises(TombolaError, match="boom"):
            Ray(threads=1).run([Fail(text="boom"), slow], store, Watcher(), keep_going=False)
        with FileLock(store.path(slow).with_name(f"{slow.key}.lock"), timeout=30):
            assert not store.has(slow)
    finally:
        ray.shutdown()


def test_an_address_that_is_none_is_named(tmp_path):
    with pytest.raises(TombolaError, match=r"no Ray cluster at 'nowhere' .*`ray start --head`"):
        Ray(address="nowhere").run([Write(text="x")], Store(tmp_path), Watcher(), keep_going=False)
