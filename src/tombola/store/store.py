"""The store: one folder per finished stage, named by a hash of everything that determines its result.

A folder is written under a temporary name and renamed when complete, so a folder with its final name is complete.
Its manifest holds a checksum per file, so later damage is detected when the stage is read.
"""

import logging
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from filelock import FileLock
from safetensors import SafetensorError

from tombola.errors import TombolaError
from tombola.foundations.folders import cache_folder, store_address
from tombola.store.manifest import MANIFEST, read_manifest, verify, write_manifest
from tombola.store.remote import Remote, is_url
from tombola.store.stage import WORK, Stage, T
from tombola.version import __version__

LOGS = "logs"
SET_ASIDE = ".aside-"
"""Marks a renamed folder that had the name of a stage but was not a finished stage."""

_NAME = re.compile(r"[a-z0-9_]+/[0-9a-f]{24}")

logger = logging.getLogger(__name__)


class Store:
    """Finished stages in a folder, shared safely by any number of processes.

    With a URL (`s3://…`, or any that fsspec supports) they are shared with other machines as well, and the cache folder
    (TOMBOLA_CACHE, by default ~/.cache/tombola) holds copies of those that were needed on this machine.
    """

    def __init__(self, root: Path | str | None = None) -> None:
        root = root or store_address()
        self.remote = Remote(str(root)) if is_url(root) else None
        if self.remote:
            root = cache_folder() / "remote" / quote(self.remote.url, safe="")
        self.root = Path(root).expanduser()
        self._seconds: dict[str, float] = {}

    @classmethod
    def of(cls, store: "Store | Path | str | None") -> "Store":
        """Return the store at a folder or URL; a store itself is returned as it is."""
        return store if isinstance(store, Store) else cls(store)

    @property
    def address(self) -> str:
        """The folder or URL that opens the same store in another process."""
        return self.remote.url if self.remote else str(self.root.absolute())

    def path(self, stage: Stage[Any]) -> Path:
        """Return the local path of the stage, finished or not."""
        return self.root / stage.kind / stage.key

    def log(self, stage: Stage[Any]) -> Path:
        """Return the file for the stage's output in a worker, and for the traceback if it fails."""
        return self.root / LOGS / f"{stage.kind}-{stage.key}.log"

    def has(self, stage: Stage[Any]) -> bool:
        """Return whether the stage is finished."""
        return self.remote.has(stage.name) if self.remote else self._has_locally(stage)

    def finished(self, stages: Iterable[Stage[Any]]) -> set[str]:
        """Return the keys of the finished stages; a remote store is listed once."""
        if self.remote:
            in_remote = self.remote.names()
            return {stage.key for stage in stages if stage.name in in_remote}
        return {stage.key for stage in stages if self._has_locally(stage)}

    def open(self, stage: Stage[Any] | str) -> Path:
        """Return the folder of a finished stage, after checking its files against their checksums.

        Args:
            stage: The stage, or its name (`kind/key`) in a result.
        """
        name = stage if isinstance(stage, str) else stage.name
        if not _NAME.fullmatch(name):
            raise TombolaError(f"{name!r} is not the name of a stage (kind/key)")
        folder = self.root / name
        if self.remote and not (folder / MANIFEST).is_file():
            self._download(self.remote, name)
        verify(folder)
        with suppress(OSError):  # garbage collection depends on the last use; a store may be read-only
            os.utime(folder)
        return folder

    def _download(self, remote: Remote, name: str) -> None:
        """Download a stage; a second process that needs it waits for the first, and garbage collection leaves it."""
        folder = self.root / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not (folder / MANIFEST).is_file():
                _set_aside(folder)
                remote.pull(name, folder)

    def read(self, stage: Stage[T]) -> T:
        """Return the typed result of a finished stage."""
        return stage.read(self.open(stage))

    def seconds(self, stage: Stage[Any]) -> float:
        """Return the seconds that a finished stage took."""
        if stage.key not in self._seconds:
            far = None if self._has_locally(stage) else self.remote
            manifest = far.manifest(stage.name) if far else read_manifest(self.path(stage))
            self._seconds[stage.key] = manifest["made"]["seconds"]
        return self._seconds[stage.key]

    def _has_locally(self, stage: Stage[Any]) -> bool:
        return os.path.isfile(f"{self.root}/{stage.kind}/{stage.key}/{MANIFEST}")

    def make(self, stage: Stage[Any], run: Callable[[Path], None]) -> bool:
        """Run the stage unless it is finished; return whether it ran.

        A second process that needs the same stage waits for the first. After a kill, the next one finds the
        unfinished folder with its `work` subfolder and may resume from there.
        """
        if self.has(stage):
            return False
        ran = not self._has_locally(stage) and self._make_locally(stage, run)
        if self.remote:
            self.remote.push(stage.name, self.path(stage))
        return ran

    def _make_locally(self, stage: Stage[Any], run: Callable[[Path], None]) -> bool:
        final = self.path(stage)
        partial = final.with_name(f"{stage.key}.partial")
        try:
            partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TombolaError(f"the store {self.root} cannot be written: {error.strerror}") from None
        with FileLock(final.with_name(f"{stage.key}.lock")):
            if self._has_locally(stage):
                shutil.rmtree(partial, ignore_errors=True)
                return False
            _clear(partial)
            started = time.time()
            try:
                run(partial)
                shutil.rmtree(partial / WORK, ignore_errors=True)
                write_manifest(partial, _about(stage, seconds=time.time() - started))
            except (OSError, SafetensorError) as error:
                raise TombolaError(
                    f"stage {stage.kind}/{stage.key} ({stage.label}) stopped: {_reason(error)}. Incomplete files "
                    "will not be read; run the same command to resume"
                ) from error
            _set_aside(final)
            os.rename(partial, final)
        return True


def _set_aside(final: Path) -> None:
    """Rename a folder with a stage's name that is not a finished stage, such as an interrupted deletion or copy."""
    if final.exists():
        aside = final.with_name(f"{final.name}{SET_ASIDE}{uuid.uuid4().hex[:8]}")
        final.rename(aside)
        logger.warning("%s had no %s and was moved to %s", final, MANIFEST, aside.name)


def _reason(error: OSError | SafetensorError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error).strip().splitlines()[0].rstrip(".")


def _about(stage: Stage[Any], seconds: float) -> dict[str, Any]:
    return {
        "stage": stage.identity(),
        "label": stage.label,
        "made": {"tombola": __version__, "seconds": round(seconds, 3)},
    }


def _clear(partial: Path) -> None:
    partial.mkdir(parents=True, exist_ok=True)
    for path in partial.iterdir():
        if path.name == WORK:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()
