"""What is in a store, how much room it takes, whether it is sound, and what no result needs any more.

Every run records in the store which stages its result needs: a root. While a run is at work it renews its root every
minute. The stages of a root are kept as long as its run is at work or its result exists, and for a grace period after.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
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
from tombola.store.manifest import MANIFEST, read_manifest, verify
from tombola.store.stage import Stage
from tombola.store.store import LOGS, SET_ASIDE, Store

ROOTS = "roots"
TRASH = "trash"
LOCK = "store.lock"
DAY = 86_400.0
RENEWAL = 60.0
"""Seconds after which a running process renews its root."""
LEASE = 15 * RENEWAL
"""Seconds after which a root that nobody renewed no longer counts as running."""
MISSING = 30 * DAY
"""Seconds for which the stages of a result are kept after its file was last seen: it may have been moved."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Item:
    """A folder of the store: a finished stage, or what is left of one that was not finished or is damaged."""

    name: str
    folder: Path
    label: str
    bytes: int
    used: float
    """When the stage was last made or read."""
    finished: bool


class RootRecord(BaseModel):
    """The content of a root's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    result: str
    finished: bool
    stages: list[str]
    seen: float
    """When the result's file was last known to exist; for a run that has not ended, when it began."""
    checksum: str = ""


@dataclass(frozen=True)
class Root:
    """A result and the stages that it needs."""

    file: Path
    result: Path
    stages: frozenset[str]
    alive: bool
    running: bool = False
    """Whether a run is at work on it."""


def register_root(store: Store, result: Path, stages: Iterable[Stage[Any]], finished: bool) -> None:
    """Record that a result needs these stages. Until it is `finished`, its file need not exist.

    A store that cannot be written keeps no roots: whoever owns it decides what goes.
    """
    path = str(result.absolute())
    record = RootRecord(
        result=path, finished=finished, stages=sorted(stage.name for stage in stages), seen=time.time()
    )
    try:
        with _locked(store):
            _write(_root_file(store, path), record)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise


@contextmanager
def running(store: Store, result: Path, stages: Iterable[Stage[Any]]) -> Iterator[None]:
    """Inside, the stages of a result are kept from garbage collection, however long the run takes."""
    register_root(store, result, stages, finished=False)
    file, over = _root_file(store, str(result.absolute())), threading.Event()

    def renew() -> None:
        while not over.wait(RENEWAL):
            with suppress(OSError):
                os.utime(file)

    thread = threading.Thread(target=renew, daemon=True, name="tombola store lease")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def roots(store: Store) -> list[Root]:
    """The results that are known, and whether their stages are still needed."""
    found, now = [], time.time()
    for file in _root_files(store):
        try:
            record = _read_root(file)
        except DamagedArtefact as error:
            logger.warning("%s", error)
            continue
        result, renewed = Path(record.result), file.stat().st_mtime
        running = not record.finished and now - renewed < LEASE
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
    """What is wrong with roots that cannot be read, in a sentence each."""
    wrong = []
    for file in _root_files(store):
        try:
            _read_root(file)
        except DamagedArtefact as error:
            wrong.append(str(error))
    return wrong


def items(store: Store) -> Iterator[Item]:
    """Every stage folder of the store: finished, unfinished, and damaged ones."""
    for folder in sorted(store.root.glob("*/*/")):
        kind = folder.parent.name
        if kind in (ROOTS, LOGS, TRASH):
            continue
        finished = (folder / MANIFEST).is_file()
        label = "unfinished" if folder.suffix in (".partial", ".fetch") else "without a manifest"
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
    """Check every folder against its checksums; what is wrong with it, if something is."""
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
    """What no result needs, and what was left unfinished, if it was last used more than so many days ago.

    While a root cannot be read, nobody knows what its result needs: finished stages are then left alone.
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
    """Delete garbage, and what was left of locks, logs and dead roots; the folders that were deleted.

    What is needed is decided and renamed away under the store's lock, which every starting run takes too, so a run
    never counts on a stage that is about to go.
    """
    with _locked(store):
        gone = _to_trash(store, garbage(store, days))
        for root in roots(store):
            if not root.alive:
                root.file.unlink(missing_ok=True)
    shutil.rmtree(store.root / TRASH, ignore_errors=True)
    _sweep(store, time.time() - days * DAY)
    return gone


def discard(store: Store, found: Iterable[Item]) -> list[Item]:
    """Delete stages whether or not a result needs them, but for those that a process works on; what was deleted.

    Args:
        store: The store.
        found: The stages.
    """
    with _locked(store):
        gone = _to_trash(store, found)
    shutil.rmtree(store.root / TRASH, ignore_errors=True)
    return gone


def _to_trash(store: Store, found: Iterable[Item]) -> list[Item]:
    """Rename folders away that nobody works on; those that were."""
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


def _sweep(store: Store, oldest: float) -> None:
    """Remove locks that nobody holds and logs of stages that are gone."""
    for lock in store.root.glob("*/*.lock"):
        with suppress(Timeout, OSError), FileLock(lock, timeout=0):
            if lock.stat().st_mtime <= oldest:
                lock.unlink()
    for log in (store.root / LOGS).glob("*.log"):
        with suppress(OSError):
            if log.stat().st_mtime <= oldest:
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
