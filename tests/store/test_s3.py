"""A store on a real S3 server: uploads that are cut short, writers side by side, objects that are lost or damaged."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from urllib.request import urlopen

import pytest

from tests.store.kinds import Write
from tombola.errors import DamagedArtefact, TombolaError
from tombola.store.store import Store

pytest.importorskip("s3fs", reason="pip install s3fs 'moto[server]' to test against an S3 server")
pytest.importorskip("moto.server", reason="pip install s3fs 'moto[server]' to test against an S3 server")

BUCKET = "tombola"
FILES = 6
WRITER = """
import sys
from tests.store.kinds import Write
from tombola.store.store import Store

def run(folder):
    for number in range(int(sys.argv[3])):
        (folder / f"part-{number}").write_bytes(bytes([number]) * 100_000)

print("ready", flush=True)
Store(sys.argv[1]).make(Write(text=sys.argv[2]), run)
"""


KILLED = """
import json, os, sys
import s3fs
from tests.store.kinds import Write
from tombola.store.store import Store

def run(folder):
    for number in range(int(sys.argv[1])):
        (folder / f"part-{number}").write_bytes(bytes([number]) * 100_000)

for line in sys.stdin:  # each writer is forked from here, where everything is imported and nothing connected
    store, text, cache = json.loads(line)
    if not (child := os.fork()):
        os.environ["TOMBOLA_CACHE"] = cache
        Store(store).make(Write(text=text), run)
        os._exit(0)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


class Writers:
    """Writers that are killed, one after the other."""

    def __init__(self):
        self.home = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(FILES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def write(self, store, text, cache, seconds=None):
        """Let a writer upload a stage, and kill it after so many seconds; true if it came to its end."""
        self.home.stdin.write(json.dumps([store.address, text, str(cache)]) + "\n")
        self.home.stdin.flush()
        process = int(self.home.stdout.readline())
        if seconds is not None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):  # it has ended by itself
                os.kill(process, signal.SIGKILL)
        return int(self.home.stdout.readline()) == 0


@pytest.fixture(scope="module")
def server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            try:
                urlopen(f"{url}/moto-api/", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield url
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def machines(server, tmp_path, monkeypatch):
    """Opens a store of its own on the server as another machine would, with a cache of its own."""
    import fsspec

    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    fsspec.filesystem("s3").makedirs(BUCKET, exist_ok=True)

    def machine(name):
        monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / name))
        return Store(f"s3://{BUCKET}/{tmp_path.name}")

    return machine


def fill(folder):
    for number in range(FILES):
        (folder / f"part-{number}").write_bytes(bytes([number]) * 100_000)


def writer(store, text, cache):
    """A process that makes a stage and uploads it."""
    environment = {**os.environ, "TOMBOLA_CACHE": str(cache)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, store.address, text, str(FILES)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def objects(store):
    return [name for name in store.remote.files.find(store.remote.root) if "part-" in name]


def test_what_one_machine_made_another_reads(machines):
    one, here, there = Write(text="1"), machines("here"), machines("there")
    assert here.make(one, fill)
    assert there.finished([one, Write(text="2")]) == {one.key}
    assert not there.make(one, fill)
    assert (there.open(one) / "part-3").read_bytes() == bytes([3]) * 100_000
    assert list(here.remote.orphans()) == []


def test_a_missing_object_and_a_flipped_byte_are_named(machines):
    one, here = Write(text="1"), machines("here")
    here.make(one, fill)
    path = next(name for name in objects(here) if name.endswith("part-2"))
    content = bytearray(here.remote.files.cat_file(path))
    content[50_000] ^= 1
    here.remote.files.pipe_file(path, bytes(content))
    with pytest.raises(DamagedArtefact, match=r"part-2 was damaged.*delete s3://.*\.json"):
        machines("there").open(one)
    here.remote.files.rm(path)
    with pytest.raises(TombolaError, match=r"could not be downloaded.*delete s3://"):
        machines("third").open(one)
    assert ["part-2 is missing" in reason for _, reason in here.remote.damaged()] == [True]


def test_four_writers_of_one_stage_leave_one(machines, tmp_path):
    one, here = Write(text="shared"), machines("here")
    writers = [writer(here, "shared", tmp_path / f"cache-{number}") for number in range(4)]
    assert [process.wait(120) for process in writers] == [0, 0, 0, 0]
    assert sorted(path.name for path in machines("there").open(one).iterdir())[-1] == f"part-{FILES - 1}"
    assert all(reason is None for _, reason in here.remote.damaged())
    for upload in here.remote.orphans():
        here.remote.files.rm(upload, recursive=True)
    assert len(objects(here)) == FILES


@pytest.mark.slow
def test_kills_during_uploads_leave_nothing_that_looks_finished(machines, tmp_path):
    rng, here = random.Random(0), machines("here")
    writers, cut, uploads = Writers(), 0, 0
    for name in ("first", "undisturbed"):  # the first one waits for the imports
        start = time.monotonic()
        assert writers.write(here, name, tmp_path / name)
    took = time.monotonic() - start
    for number in range(int(os.environ.get("TOMBOLA_S3_KILLS", "12"))):
        one, cache = Write(text=f"killed {number}"), tmp_path / f"cache-{number}"
        writers.write(here, one.text, cache, rng.uniform(0, took))
        fresh = machines(f"fresh-{number}")
        if fresh.has(one):
            assert (fresh.open(one) / "part-0").read_bytes() == bytes(100_000)
        else:
            cut += 1
            uploads += bool(here.remote.files.glob(f"{here.remote.root}/{one.name}/*"))
            assert writers.write(here, one.text, cache)
            assert (fresh.open(one) / f"part-{FILES - 1}").is_file()
    writers.home.kill()
    writers.home.wait()
    print(
        {"storm": "kills of writers on S3", "kills": number + 1, "cut": cut, "during uploads": uploads},
        flush=True,
    )
    assert uploads > 0
    for upload in here.remote.orphans():
        here.remote.files.rm(upload, recursive=True)
    assert all(reason is None for _, reason in here.remote.damaged())
