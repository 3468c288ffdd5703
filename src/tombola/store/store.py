"""The store: one folder per finished stage, named by the hash of all that decides its result.

A folder is written under a temporary name and renamed when complete, so whatever has its final name is whole.
A manifest inside holds a checksum per file, so later damage is noticed when the stage is read.
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
"""In the name of a folder that was found where a stage belongs, but is none."""

_NAME = re.compile(r"[a-z0-9_]+/[0-9a-f]{24}")

logger = logging.getLogger(__name__)


class Store:
    """Finished stages in a folder, shared safely by any number of processes.

    With a URL (`s3://…`, whatever fsspec knows) they are shared with other machines as well, and a folder in
    the cache folder (TOMBOLA_CACHE, else ~/.cache/tombola) holds copies of what was needed here.
    """

    def __init__(self, root: Path | str | None = None) -> None:
        root = root or store_address()
        self.remote = Remote(str(root)) if is_url(root) else None
        if self.remote:
            root = cache_folder() / "remote" / quote(self.remote.url, safe="")
        self.root = Path(root).expanduser()
        self._seconds: dict[str, float] = {}

    @property
    def address(self) -> str:
        """What opens the same store in another process, or on another machine."""
        return self.remote.url if self.remote else str(self.root.absolute())

    def path(self, stage: Stage[Any]) -> Path:
        """Where the finished stage is or will be, on this machine."""
        return self.root / stage.kind / stage.key

    def log(self, stage: Stage[Any]) -> Path:
        """The file for what the stage prints in a worker, and for the traceback if it fails."""
        return self.root / LOGS / f"{stage.kind}-{stage.key}.log"

    def has(self, stage: Stage[Any]) -> bool:
        """Whether the stage is finished."""
        return self.remote.has(stage.name) if self.remote else self._has_here(stage)

    def finished(self, stages: Iterable[Stage[Any]]) -> set[str]:
        """The keys of those stages that are finished; far away, by one listing in place of a question each."""
        if self.remote:
            there = self.remote.names()
            return {stage.key for stage in stages if stage.name in there}
        return {stage.key for stage in stages if self._has_here(stage)}

    def open(self, stage: Stage[Any] | str) -> Path:
        """The folder of a finished stage, after its files have been checked against their checksums.

        Args:
            stage: The stage, or its name (`kind/key`) as a result records it.
        """
        name = stage if isinstance(stage, str) else stage.name
        if not _NAME.fullmatch(name):
            raise TombolaError(f"{name!r} is not the name of a stage (kind/key)")
        folder = self.root / name
        if self.remote and not (folder / MANIFEST).is_file():
            self.remote.pull(name, folder)
        verify(folder)
        with suppress(OSError):  # garbage collection goes by last use; a store may be read-only
            os.utime(folder)
        return folder

    def read(self, stage: Stage[T]) -> T:
        """The typed result of a finished stage."""
        return stage.read(self.open(stage))

    def seconds(self, stage: Stage[Any]) -> float:
        """How long a finished stage took."""
        if stage.key not in self._seconds:
            far = None if self._has_here(stage) else self.remote
            manifest = far.manifest(stage.name) if far else read_manifest(self.path(stage))
            self._seconds[stage.key] = manifest["made"]["seconds"]
        return self._seconds[stage.key]

    def _has_here(self, stage: Stage[Any]) -> bool:
        return os.path.isfile(f"{self.root}/{stage.kind}/{stage.key}/{MANIFEST}")

    def make(self, stage: Stage[Any], run: Callable[[Path], None]) -> bool:
        """Run the stage unless it is finished; true if it ran now.

        A second process that wants the same stage waits for the first. After a kill, the next one finds the
        unfinished folder with its `work` sub-folder and may go on from there.
        """
        if self.has(stage):
            return False
        ran = not self._has_here(stage) and self._make_here(stage, run)
        if self.remote:
            self.remote.push(stage.name, self.path(stage))
        return ran

    def _make_here(self, stage: Stage[Any], run: Callable[[Path], None]) -> bool:
        final = self.path(stage)
        partial = final.with_name(f"{stage.key}.partial")
        try:
            partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TombolaError(f"the store {self.root} cannot be written: {error.strerror}") from None
        with FileLock(final.with_name(f"{stage.key}.lock")):
            if self._has_here(stage):
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
                    f"stage {stage.kind}/{stage.key} ({stage.label}) stopped: {_reason(error)}. "
                    "Nothing half-written will be read; the same command goes on from here"
                ) from error
            _set_aside(final)
            os.rename(partial, final)
        return True


def _set_aside(final: Path) -> None:
    """Rename a folder that has a stage's name but is no finished stage: a deletion or a copy that was cut short."""
    if final.exists():
        aside = final.with_name(f"{final.name}{SET_ASIDE}{uuid.uuid4().hex[:8]}")
        final.rename(aside)
        logger.warning("%s had no %s and was set aside as %s", final, MANIFEST, aside.name)


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
