"""List, check and garbage-collect the content of a store. What runs need is recorded in its roots."""

from __future__ import annotations

import re
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from tombola.errors import DamagedArtefact
from tombola.store.manifest import MANIFEST, read_manifest, verify
from tombola.store.roots import DAY, ROOTS, Root, damaged_roots, locked, roots
from tombola.store.store import LOGS, SET_ASIDE, Store

TRASH = "trash"

_STAGE = re.compile(r"[a-z0-9_]+/[0-9a-f]{24}(\..+)?")
_STAGE_LOCK = re.compile(r"[0-9a-f]{24}\.lock")
_STAGE_LOG = re.compile(r"[a-z0-9_]+-[0-9a-f]{24}\.log")
_TRASHED = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Item:
    """A folder of the store: a finished stage, or the remains of an unfinished or damaged one."""

    name: str
    folder: Path
    label: str
    bytes: int
    used: float
    """The time when the stage was made or last read."""
    finished: bool

    @property
    def stage(self) -> str:
        """The name of the stage that the folder holds, or the unfinished work on it."""
        return self.name.removesuffix(".partial")


def items(store: Store) -> Iterator[Item]:
    """Yield every stage folder of the store: finished, unfinished and damaged ones.

    Other folders, which are not the store's, are left out.
    """
    for folder in sorted(store.root.glob("*/*/")):
        kind = folder.parent.name
        if kind in (ROOTS, LOGS, TRASH) or not _STAGE.fullmatch(f"{kind}/{folder.name}"):
            continue
        unfinished = folder.suffix in (".partial", ".fetch")  # the manifest of a download comes first
        finished = not unfinished and (folder / MANIFEST).is_file()
        label = "unfinished" if unfinished else "without a manifest"
        if finished:
            try:
                label = str(read_manifest(folder)["label"])
            except DamagedArtefact:
                label = "damaged"
        elif SET_ASIDE in folder.name:
            label = "set aside"
        with suppress(FileNotFoundError):  # another process may finish or delete it meanwhile
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            yield Item(f"{kind}/{folder.name}", folder, label, size, folder.stat().st_mtime, finished)


def damaged(store: Store) -> Iterator[tuple[Item, str | None]]:
    """Check every folder against its checksums, and yield it with the problem, or None."""
    for item in items(store):
        if item.finished:
            try:
                verify(item.folder)
            except DamagedArtefact as error:
                yield item, str(error)
            else:
                yield item, None
        elif item.label in ("without a manifest", "set aside"):
            yield item, f"{item.folder} has no {MANIFEST}; `tombola store gc --yes` removes it"


def garbage(store: Store, days: float = 1.0) -> list[Item]:
    """Return stages that no result needs, and unfinished ones, last used more than `days` days ago.

    If a root cannot be read, the needs of its result are unknown: all finished stages are kept.
    """
    unsure = bool(damaged_roots(store))
    needed = {name for root in roots(store) if root.alive for name in root.stages}
    oldest = time.time() - days * DAY
    return [
        item
        for item in items(store)
        if item.used <= oldest and item.stage not in needed and not (item.finished and unsure)
    ]


def collect_garbage(store: Store, days: float = 1.0) -> list[Item]:
    """Delete garbage, old locks and logs, and dead roots; return the deleted folders.

    Garbage is determined and renamed under the store's lock, which every starting run takes too, so a run never relies
    on a stage that is about to be deleted.
    """
    with locked(store):
        gone = _to_trash(store, garbage(store, days))
        for root in roots(store):
            if not root.alive:
                root.file.unlink(missing_ok=True)
    _empty_trash(store)
    _sweep(store, time.time() - days * DAY)
    return gone


def discard(store: Store, found: Iterable[Item], run: Root | None = None) -> list[Item]:
    """Delete stages even if a result needs them, except those that an active run needs; return the deleted ones.

    Args:
        store: The store.
        found: The stages.
        run: The run whose root is deleted too, unless it has been started again.
    """
    with locked(store):
        active = [root for root in roots(store) if root.running]
        needed = {name for root in active for name in root.stages}
        gone = _to_trash(store, [item for item in found if item.stage not in needed])
        if run is not None and run.file not in {root.file for root in active}:
            run.file.unlink(missing_ok=True)
    _empty_trash(store)
    return gone


def _to_trash(store: Store, unneeded: Iterable[Item]) -> list[Item]:
    """Move folders that no process works on to the trash, and return them."""
    trash, gone = store.root / TRASH, []
    for item in unneeded:
        key = item.folder.name.split(".")[0]
        try:
            with FileLock(item.folder.with_name(f"{key}.lock"), timeout=0):
                trash.mkdir(exist_ok=True)
                item.folder.rename(trash / uuid.uuid4().hex)
        except (Timeout, FileNotFoundError):
            continue
        gone.append(item)
    return gone


def _empty_trash(store: Store) -> None:
    for folder in (store.root / TRASH).glob("*"):
        if _TRASHED.fullmatch(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (store.root / TRASH).rmdir()


def _sweep(store: Store, oldest: float) -> None:
    """Remove the stages' old locks that no process holds, and their old logs."""
    for lock in store.root.glob("*/*.lock"):
        if not _STAGE_LOCK.fullmatch(lock.name):
            continue
        with suppress(Timeout, OSError), FileLock(lock, timeout=0):
            if lock.stat().st_mtime <= oldest:
                lock.unlink()
    for log in (store.root / LOGS).glob("*.log"):
        with suppress(OSError):
            if _STAGE_LOG.fullmatch(log.name) and log.stat().st_mtime <= oldest:
                log.unlink()
