"""What the storm is made of: commands in processes of their own, kills, flipped bits, and the comparison afterwards."""

import hashlib
import importlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import suppress
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
TIMES |= {"resumed_from", "log", "latency", "speedup", "onnx_speedup", "verdict", "recipe_hash"}
"""Entries of JSON files that hold times, the course of a run or the place it ran in, and nothing of its result."""


CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.utime",
}
"""Events of Python by which a command changes files; it opens others to write."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def command(
    *words: str, at: Path, threads: int = 1, die_at: int | None = None, tally: Path | None = None
) -> Any:
    """A `tombola` command in a process group of its own, forked from this process, which has everything imported.

    What it prints goes to the file TOMBOLA_STORM_LOG, if that is set.

    Args:
        *words: The arguments of the command.
        at: The folder that it runs in.
        threads: Of PyTorch.
        die_at: Which change of a file, counted from 1, the command does not live to see; None lets it live.
        tally: A file for the number of changes and the modules that were loaded.
    """

    def run() -> None:
        import torch

        os.setsid()
        os.chdir(at)
        torch.set_num_threads(threads)
        sink = os.open(
            os.environ.get("TOMBOLA_STORM_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND
        )
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.argv = ["tombola", *words]
        changes = _count_changes(at, die_at)
        from tombola.cli import main

        try:
            main()
        finally:
            if tally is not None:
                tally.write_text(json.dumps({"changes": changes[0], "modules": list(sys.modules)}))

    process = FORK.Process(target=run)
    process.start()
    return process


def _count_changes(at: Path, die_at: int | None) -> list[int]:
    """Count the changes of files below a folder from now on, and end this process before one of them."""
    seen, here = [0], str(at)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES and not (event == "open" and (arguments[2] or 0) & WRITING):
            return
        name = arguments[0]
        if isinstance(name, str | os.PathLike) and os.path.isabs(name) and not str(name).startswith(here):
            return
        seen[0] += 1
        if seen[0] == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def load_modules(names: list[str]) -> None:
    """Import here what a command needed, so that kills of the next one do not all fall into its imports."""
    for name in names:
        if name not in sys.modules and not name.startswith(("__main__", "tests.")):
            with suppress(Exception):
                importlib.import_module(name)


class Ledger:
    """What a storm has done so far, a line for each round that ended well: it goes on after its last one.

    Without the variable TOMBOLA_STORM_LEDGER nothing is kept.
    """

    def __init__(self) -> None:
        place = os.environ.get("TOMBOLA_STORM_LEDGER")
        self.path = Path(place) if place else None
        lines = self.path.read_text().splitlines() if self.path and self.path.is_file() else []
        self.rounds = [json.loads(line) for line in lines]

    def done(self, storm: str) -> tuple[int, int]:
        """The kills and the rounds of one storm."""
        own = [one for one in self.rounds if one["storm"] == storm]
        return sum(one["kills"] for one in own), len(own)

    def add(self, storm: str, kills: int, **figures: Any) -> None:
        """Note a round."""
        self.rounds.append({"storm": storm, "kills": kills, **figures})
        line = json.dumps(self.rounds[-1])
        print(line, flush=True)
        if self.path:
            with self.path.open("a") as file:
                file.write(line + "\n")


def kill_group(process: Any) -> bool:
    """Kill a command with all that it started; false if it had ended by itself."""
    children = []
    with suppress(psutil.Error):
        children = psutil.Process(process.pid).children(recursive=True)
    for one in [process.pid, *(child.pid for child in children)]:
        _kill(one)
    process.join()
    return process.exitcode == -signal.SIGKILL


def kill_first(process: Any) -> bool:
    """Kill a command, but not what it started; false if it had ended by itself."""
    _kill(process.pid)
    process.join()
    return process.exitcode == -signal.SIGKILL


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
    """A hash of every file below a folder, times aside; locks, logs and roots are no part of a result.

    The page of a compression shows its times everywhere: it must be there and be whole, no more.
    """
    found = {}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        aside = path.suffix in (".lock", ".log") or "roots" in parts or path.name == "checksums.json"
        if path.is_file() and not aside:
            found["/".join(parts)] = hashlib.sha256(_untimed(path)).hexdigest()
    return found


def _untimed(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.name == "report.html" and (path.parent / "model").is_dir():
        return b"whole" if raw.rstrip().endswith(b"</html>") else raw
    if (
        path.name == "journal.jsonl"
    ):  # a checksum before each line; a resumed attack ends its examples in another order
        lines = [json.loads(line.partition(" ")[2]) for line in raw.decode().splitlines()]
        return "\n".join(sorted(json.dumps(_without_times(line), sort_keys=True) for line in lines)).encode()
    if path.suffix != ".json":
        return raw
    plain = json.loads(raw)
    if path.name == "manifest.json":
        plain["files"] = sorted(plain["files"])
    return json.dumps(_without_times(plain), sort_keys=True).encode()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(one) for key, one in value.items() if key not in TIMES}
    if not isinstance(value, list):
        return value
    return [_without_times(one) for one in value if not str(one).startswith("the speed of ")]


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
