"""Roots: which stages the result of a run needs.

Every run records a root in the store. While it runs, it renews its root every minute, and holds a lock, which on its
own machine protects it even while it is paused. The stages of a root are kept as long as its run is active or its
result exists, and for a grace period after.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import is_intact, sealed, write_whole
from tombola.store.leases import at_work, is_at_work
from tombola.store.stage import Stage
from tombola.store.store import Store

ROOTS = "roots"
LOCK = "store.lock"
DAY = 86_400.0
RENEWAL = 60.0
"""Seconds between renewals of a running process's root."""
LEASE = 15 * RENEWAL
"""Seconds without renewal after which a root no longer counts as running."""
MISSING = 30 * DAY
"""Seconds to keep the stages of a result after its file was last seen: it may have been moved."""

logger = logging.getLogger(__name__)


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
    path = str(place_of(result))
    file, names = _root_file(store, path), {stage.name for stage in stages}
    try:
        with locked(store):
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
    file, over = _root_file(store, str(place_of(result))), threading.Event()

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
    known_roots, now = [], time.time()
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
        known_roots.append(Root(file, result, frozenset(record.stages), alive, running))
    return known_roots


def damaged_roots(store: Store) -> list[str]:
    """Return a sentence for each root that cannot be read."""
    wrong = []
    for file in _root_files(store):
        try:
            _read_root(file)
        except DamagedArtefact as error:
            wrong.append(str(error))
    return wrong


def place_of(result: Path) -> Path:
    """Return the absolute path of a result, the same however it is written."""
    return result.parent.resolve() / result.name


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
            f"{file} is damaged: delete it, and the next run of the same command recreates it. Until then, `tombola "
            "store gc` does not delete finished stages"
        )
    return record


def _root_file(store: Store, result: str) -> Path:
    return store.root / ROOTS / f"{hashlib.blake2b(result.encode(), digest_size=12).hexdigest()}.json"


def _write(file: Path, record: RootRecord) -> None:
    write_whole(file, sealed(record.model_dump(mode="json", exclude={"checksum"})))


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Hold the lock of the store, which every starting run and every garbage collection takes."""
    try:
        store.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TombolaError(
            f"the store {store.root} cannot be written ({error.strerror}): choose another one with --store"
        ) from None
    with FileLock(store.root / LOCK):
        yield
