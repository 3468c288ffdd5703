"""The manifest of a finished stage: a checksum per file, so that what was damaged later is noticed when it is read."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from tombola.errors import DamagedArtefact
from tombola.foundations.paths import inside

MANIFEST = "manifest.json"


def verify(folder: Path) -> dict[str, Any]:
    """Check every file of a finished folder against its manifest, and give the manifest."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        path = inside(folder, name)
        if not path.is_file():
            raise DamagedArtefact(f"{path} is missing; {_remedy(folder)}")
        if path.stat().st_size != entry["size"] or _checksum(path) != entry["blake2b"]:
            raise DamagedArtefact(f"{path} was damaged after it was written; {_remedy(folder)}")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a finished folder."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
        manifest["files"], manifest["stage"]
    except FileNotFoundError:
        raise DamagedArtefact(f"{folder} is not a finished stage: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        raise DamagedArtefact(f"{folder / MANIFEST} cannot be read; {_remedy(folder)}") from None
    return manifest


def write_manifest(folder: Path, about: dict[str, Any]) -> None:
    """Seal a folder: what is in it now, and what is said about it."""
    files = {
        str(path.relative_to(folder)): {"size": path.stat().st_size, "blake2b": _checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    with open(folder / MANIFEST, "w") as file:
        json.dump({**about, "files": files}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run the same command again to make it anew"


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
