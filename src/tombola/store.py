"""The store: one folder per finished stage, named by the hash of all that made it.

A folder is written under a temporary name and renamed when complete, so what has its final name is whole.
A manifest inside holds a checksum per file, so what was damaged later is noticed when it is read.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock
from safetensors import SafetensorError

from tombola.errors import DamagedArtefact, TombolaError
from tombola.version import __version__

MANIFEST = "manifest.json"
WORK = "work"
"""The sub-folder of an unfinished stage that survives a kill (checkpoints) and is removed at the end."""


@dataclass(frozen=True)
class Ref:
    """Something outside the store that a stage reads: its content's fingerprint, and where it lies.

    Only the fingerprint names the stage: the same data in another place is the same data.
    """

    fingerprint: str
    where: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of the road: a pure function of its settings, its inputs and its references."""

    kind: str
    version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, "Stage"] = field(default_factory=dict)
    refs: Mapping[str, Ref] = field(default_factory=dict)
    unhashed: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @cached_property
    def key(self) -> str:
        """The name of this stage's folder."""
        text = json.dumps(self.identity(), sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def identity(self) -> dict[str, Any]:
        """All that decides what the stage produces."""
        return {
            "kind": self.kind,
            "version": self.version,
            "settings": dict(self.settings),
            "inputs": {name: stage.key for name, stage in self.inputs.items()},
            "refs": {name: ref.fingerprint for name, ref in self.refs.items()},
        }

    def road(self) -> list["Stage"]:
        """This stage and all that it stands on, each once, in an order in which they can run."""
        seen: dict[str, Stage] = {}

        def visit(stage: Stage) -> None:
            if stage.key not in seen:
                for before in stage.inputs.values():
                    visit(before)
                seen[stage.key] = stage

        visit(self)
        return list(seen.values())


class Store:
    """Finished stages in a folder, shared safely by any number of processes."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root or os.environ.get("TOMBOLA_STORE") or "~/.cache/tombola/store").expanduser()

    def path(self, stage: Stage) -> Path:
        """Where the finished stage is or will be."""
        return self.root / stage.kind / stage.key

    def has(self, stage: Stage) -> bool:
        """Whether the stage is finished."""
        return (self.path(stage) / MANIFEST).is_file()

    def open(self, stage: Stage) -> Path:
        """The finished stage's folder, after its files have been checked against their checksums."""
        folder = self.path(stage)
        verify(folder)
        return folder

    def make(self, stage: Stage, run: Callable[[Path], None]) -> bool:
        """Run the stage unless it is finished; true if it ran now.

        A second process that wants the same stage waits for the first. After a kill, the next one finds the
        unfinished folder with its `work` sub-folder and may go on from there.
        """
        if self.has(stage):
            return False
        final = self.path(stage)
        partial = final.with_name(f"{stage.key}.partial")
        try:
            partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TombolaError(f"the store {self.root} cannot be written: {error.strerror}") from None
        with FileLock(final.with_name(f"{stage.key}.lock")):
            if self.has(stage):
                shutil.rmtree(partial, ignore_errors=True)
                return False
            _clear(partial)
            started = time.time()
            try:
                run(partial)
                shutil.rmtree(partial / WORK, ignore_errors=True)
                _seal(partial, stage, seconds=time.time() - started)
            except (OSError, SafetensorError) as error:
                raise TombolaError(
                    f"stage {stage.kind}/{stage.key} ({stage.label}) stopped: {_reason(error)}. "
                    "Nothing half-written will be read; the same command goes on from here"
                ) from error
            os.rename(partial, final)
        return True


def verify(folder: Path) -> dict[str, Any]:
    """Check every file of a finished folder against its manifest, and give the manifest."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        path = folder / name
        if not path.is_file():
            raise DamagedArtefact(f"{path} is missing; {_remedy(folder)}")
        if path.stat().st_size != entry["size"] or _checksum(path) != entry["blake2b"]:
            raise DamagedArtefact(f"{path} was damaged after it was written; {_remedy(folder)}")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["files"], manifest["stage"]
    except FileNotFoundError:
        raise DamagedArtefact(f"{folder} is not a finished stage: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        raise DamagedArtefact(f"{folder / MANIFEST} cannot be read; {_remedy(folder)}") from None
    return manifest


def _reason(error: OSError | SafetensorError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error).strip().splitlines()[0].rstrip(".")


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run the same command again to make it anew"


def _seal(folder: Path, stage: Stage, seconds: float) -> None:
    files = {
        str(path.relative_to(folder)): {"size": path.stat().st_size, "blake2b": _checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {
        "stage": stage.identity(),
        "label": stage.label,
        "files": files,
        "made": {"tombola": __version__, "seconds": round(seconds, 3)},
    }
    with open(folder / MANIFEST, "w") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _clear(partial: Path) -> None:
    partial.mkdir(parents=True, exist_ok=True)
    for path in partial.iterdir():
        if path.name == WORK:
            continue
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
