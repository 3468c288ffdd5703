"""List, check and garbage-collect the content of a store.

Every run records a root in the store: the stages that its result needs. While it runs, it renews its root every
minute, and holds a lock, which on its own machine protects it even while it is paused. The stages of a root are kept as
long as its run is active or its result exists, and for a grace period after.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import is_intact, sealed, write_whole
from tombola.store.leases import at_work, is_at_work
from tombola.store.manifest import MANIFEST, read_manifest, verify
from tombola.store.stage import Stage
from tombola.store.store import LOGS, SET_ASIDE, Store

ROOTS = "roots"
TRASH = "trash"
LOCK = "store.lock"
DAY = 86_400.0
RENEWAL = 60.0
"""Seconds between renewals of a running process's root."""
LEASE = 15 * RENEWAL
"""Seconds without renewal after which a root no longer counts as running."""
MISSING = 30 * DAY
"""Seconds to keep the stages of a result after its file was last seen: it may have been moved."""

_STAGE = re.compile(r"[a-z0-9_]+/[0-9a-f]{24}(\..+)?")
_STAGE_LOCK = re.compile(r"[0-9a-f]{24}\.lock")
_STAGE_LOG = re.compile(r"[a-z0-9_]+-[0-9a-f]{24}\.log")
_TRASHED = re.compile(r"[0-9a-f]{32}")

logger = logging.getLogger(__name__)


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


class RootRecord(BaseModel):
    """The content of a root's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    result: str
    finished: bool
    stages: list[str]
    seen: float
    """The time when the result's file was last known to exist; for an unfinished run, the time of its start."""
    checksum: str = ""


@dataclass(frozen=True)
class Root:
    """A result and the stages that it needs."""

    file: Path
    result: Path
    stages: frozenset[str]
    alive: bool
    running: bool = False
    """Whether its run is active."""


def register_root(store: Store, result: Path, stages: Iterable[Stage[Any]], finished: bool) -> None:
    """Record that a result needs these stages. Until it is `finished`, its file need not exist.

    The stages of an existing result are kept until it is replaced: the run may never finish. A read-only store records
    no roots: its owner decides what to delete.
    """
    path = str(result.absolute())
    file, names = _root_file(store, path), {stage.name for stage in stages}
    try:
        with _locked(store):
            if not finished and result.is_file() and file.is_file():
                with suppress(DamagedArtefact):
                    names |= set(_read_root(file).stages)
            _write(file, RootRecord(result=path, finished=finished, stages=sorted(names), seen=time.time()))
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise


@contextmanager
def running(store: Store, result: Path, stages: Iterable[Stage[Any]]) -> Iterator[None]:
    """Protect the stages of a result from garbage collection, however long the run takes."""
    stages = list(stages)
    register_root(store, result, stages, finished=False)
    file, over = _root_file(store, str(result.absolute())), threading.Event()

    def renew() -> None:
        while not over.wait(RENEWAL):
            with suppress(OSError):
                try:
                    os.utime(file)
                except FileNotFoundError:  # deleted on another machine while this process was paused
                    register_root(store, result, stages, finished=False)

    thread = threading.Thread(target=renew, daemon=True, name="tombola store lease")
    thread.start()
    try:
        with at_work(file):
            yield
    finally:
        over.set()
        thread.join()


def roots(store: Store) -> list[Root]:
    """Return the known results, and whether their stages are still needed."""
    found, now = [], time.time()
    for file in _root_files(store):
        try:
            record = _read_root(file)
        except DamagedArtefact as error:
            logger.warning("%s", error)
            continue
        result, renewed = Path(record.result), file.stat().st_mtime
        running = not record.finished and (now - renewed < LEASE or is_at_work(file))
        if result.is_file():
            alive = True
            if record.finished and now - record.seen > DAY:
                with suppress(OSError):
                    _write(file, record.model_copy(update={"seen": now}))
        elif record.finished:
            alive = now - record.seen < MISSING
        else:
            alive = running
        found.append(Root(file, result, frozenset(record.stages), alive, running))
    return found


def damaged_roots(store: Store) -> list[str]:
    """Return a sentence for each root that cannot be read."""
    wrong = []
    for file in _root_files(store):
        try:
            _read_root(file)
        except DamagedArtefact as error:
            wrong.append(str(error))
    return wrong


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
        if item.used <= oldest and (not item.finished or (item.name not in needed and not unsure))
        if item.name.removesuffix(".partial") not in needed or SET_ASIDE in item.name
    ]


def collect_garbage(store: Store, days: float = 1.0) -> list[Item]:
    """Delete garbage, old locks and logs, and dead roots; return the deleted folders.

    Garbage is determined and renamed under the store's lock, which every starting run takes too, so a run never relies
    on a stage that is about to be deleted.
    """
    with _locked(store):
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
    with _locked(store):
        active = [root for root in roots(store) if root.running]
        needed = {name for root in active for name in root.stages}
        gone = _to_trash(store, [item for item in found if item.name not in needed])
        if run is not None and run.file not in {root.file for root in active}:
            run.file.unlink(missing_ok=True)
    _empty_trash(store)
    return gone


def _to_trash(store: Store, found: Iterable[Item]) -> list[Item]:
    """Move folders that no process works on to the trash, and return them."""
    trash, gone = store.root / TRASH, []
    for item in found:
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


def _root_files(store: Store) -> list[Path]:
    return sorted((store.root / ROOTS).glob("*.json"))


def _read_root(file: Path) -> RootRecord:
    try:
        content = file.read_bytes()
        record = RootRecord.model_validate_json(content)
    except (ValidationError, OSError):
        record = None
    if record is None or not is_intact(content):
        raise DamagedArtefact(
            f"{file} is damaged: delete it, and the run that made it will write it again. Until then, "
            "`tombola store gc` leaves finished stages alone"
        )
    return record


def _root_file(store: Store, result: str) -> Path:
    return store.root / ROOTS / f"{hashlib.blake2b(result.encode(), digest_size=12).hexdigest()}.json"


def _write(file: Path, record: RootRecord) -> None:
    write_whole(file, sealed(record.model_dump(mode="json", exclude={"checksum"})))


@contextmanager
def _locked(store: Store) -> Iterator[None]:
    try:
        store.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TombolaError(
            f"the store {store.root} cannot be written ({error.strerror}): give another one with --store"
        ) from None
    with FileLock(store.root / LOCK):
        yield
