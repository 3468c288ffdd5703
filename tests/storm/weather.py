"""What the storm is made of: commands in processes of their own, kills, flipped bits, and the comparison afterwards."""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import psutil

FORK = multiprocessing.get_context("fork")
TIMES = {
    "seconds",
    "run_now",
    "machine",
    "checksum",
    "rows_per_second",
    "examples_per_second",
    "resumed",
    "made",
}
TIMES |= {"resumed_from", "log"}
"""Entries of JSON files that hold times or the course of a run, and nothing of its result."""


def command(*words: str, threads: int = 1) -> Any:
    """A `tombola` command in a process group of its own, forked from this process, which has everything imported.

    What it prints goes to the file TOMBOLA_STORM_LOG, if that is set.
    """

    def run() -> None:
        import torch

        os.setsid()
        torch.set_num_threads(threads)
        sink = os.open(
            os.environ.get("TOMBOLA_STORM_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.argv = ["tombola", *words]
        from tombola.cli import main

        main()

    process = FORK.Process(target=run)
    process.start()
    return process


def kill_group(process: Any) -> bool:
    """Kill a command with all that it started; false if it had ended by itself."""
    running = process.is_alive()
    for one in [*psutil.Process(process.pid).children(recursive=True)] if running else []:
        _kill(one.pid)
    if running:
        _kill(process.pid)
    process.join()
    return running and process.exitcode == -signal.SIGKILL


def kill_worker(process: Any, mark: str, rng: random.Random) -> bool:
    """Kill one worker of a command, known by the beginning of its title or by its code; false if there is none.

    Ray's own agents are no workers: without them, the node is lost.
    """
    workers = []
    for one in psutil.Process(process.pid).children(recursive=True) if process.is_alive() else []:
        try:
            title, *rest = one.cmdline() or [""]
            if (title.startswith(mark) and not title.endswith(("Agent", "IDLE"))) or any(
                word.startswith("from multiprocessing") and mark in word for word in rest
            ):
                workers.append(one.pid)
        except psutil.Error:
            continue
    return bool(workers) and _kill(rng.choice(workers))


def _kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def content(root: Path) -> dict[str, str]:
    """A hash of every file below a folder, times aside; locks, logs and roots are no part of a result."""
    found = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        aside = path.suffix in (".lock", ".log") or "roots" in parts or path.name == "checksums.json"
        if path.is_file() and not aside:
            found["/".join(parts)] = hashlib.sha256(_untimed(path)).hexdigest()
    return found


def _untimed(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix != ".json":
        return raw
    plain = json.loads(raw)
    if path.name == "manifest.json":
        plain["files"] = sorted(plain["files"])
    return json.dumps(_without_times(plain), sort_keys=True).encode()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(one) for key, one in value.items() if key not in TIMES}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def leftovers(root: Path) -> list[str]:
    """What an undisturbed run does not leave behind."""
    marks = (".partial", ".fetch", ".old", ".aside-")
    return [
        str(path)
        for path in root.rglob("*")
        if any(mark in path.name for mark in marks) or path.name == "work"
    ]


def flip(path: Path, rng: random.Random) -> bytes:
    """Flip one bit of a file; its content before."""
    whole = path.read_bytes()
    place = rng.randrange(len(whole))
    path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :])
    return whole


def wait(seconds: float, process: Any) -> None:
    """Until the moment of a kill, or the end of the process."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.is_alive():
        time.sleep(0.005)
