"""What is in a store, how much room it takes, whether it is sound, and what no result needs any more.

Every run notes in the store which stages its result stands on (a root). What stands under a root is kept for as long
as the result's file is there.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tombola.errors import DamagedArtefact
from tombola.store.manifest import MANIFEST, read_manifest, verify
from tombola.store.stage import Stage
from tombola.store.store import Store

ROOTS = "roots"
DAY = 86_400.0


@dataclass(frozen=True)
class Item:
    """A folder of the store: a finished stage, or what is left of one that was not finished."""

    name: str
    folder: Path
    label: str
    bytes: int
    made: float
    finished: bool


@dataclass(frozen=True)
class Root:
    """A result and the stages that it stands on."""

    file: Path
    result: Path
    stages: frozenset[str]
    alive: bool


def register_root(store: Store, result: Path, stages: Iterable[Stage[Any]], finished: bool) -> None:
    """Record that a result needs these stages. Until it is `finished`, its file need not exist."""
    path = str(result.absolute())
    file = store.root / ROOTS / f"{hashlib.blake2b(path.encode(), digest_size=12).hexdigest()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {"result": path, "finished": finished, "stages": sorted(stage.name for stage in stages)}
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(content))
    partial.rename(file)


def roots(store: Store, days: float = 7.0) -> list[Root]:
    """The results that are known. A run that has not ended counts as alive for so many days."""
    found = []
    for file in sorted((store.root / ROOTS).glob("*.json")):
        content = json.loads(file.read_text())
        result = Path(content["result"])
        running = not content["finished"] and time.time() - file.stat().st_mtime < days * DAY
        found.append(Root(file, result, frozenset(content["stages"]), running or result.is_file()))
    return found


def items(store: Store) -> Iterator[Item]:
    """Every folder of the store, finished ones and others."""
    for folder in sorted(store.root.glob("*/*/")):
        finished = (folder / MANIFEST).is_file()
        if not finished and folder.suffix not in (".partial", ".fetch"):
            continue
        label = read_manifest(folder)["label"] if finished else "unfinished"
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        name = f"{folder.parent.name}/{folder.name}"
        yield Item(name, folder, label, size, folder.stat().st_mtime, finished)


def damaged(store: Store) -> Iterator[tuple[Item, str | None]]:
    """Check every finished folder against its checksums; what is wrong with it, if something is."""
    for item in items(store):
        if item.finished:
            try:
                verify(item.folder)
            except DamagedArtefact as error:
                yield item, str(error)
            else:
                yield item, None


def garbage(store: Store, days: float = 1.0) -> list[Item]:
    """What no result stands on, and what was left unfinished, if it is older than so many days."""
    needed = {name for root in roots(store) if root.alive for name in root.stages}
    oldest = time.time() - days * DAY
    return [
        item
        for item in items(store)
        if item.made <= oldest and item.name.removesuffix(".partial") not in needed
    ]


def collect_garbage(store: Store, found: Iterable[Item]) -> list[Item]:
    """Delete these folders, but not one that a process is working on; what was deleted. Forgets dead roots."""
    gone = []
    for item in found:
        key = item.folder.name.split(".")[0]
        lock = FileLock(item.folder.with_name(f"{key}.lock"))
        try:
            with lock.acquire(timeout=0):
                (item.folder / MANIFEST).unlink(missing_ok=True)  # first, so that no half of it looks whole
                shutil.rmtree(item.folder)
        except Timeout:
            continue
        gone.append(item)
    for root in roots(store):
        if not root.alive:
            root.file.unlink()
    return gone
