"""The manifest of a finished stage: a checksum per file, to detect later damage on reading."""

import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import checksum, is_intact, sealed
from tombola.foundations.paths import inside

MANIFEST = "manifest.json"


class FileEntry(BaseModel):
    """A file of a finished stage."""

    model_config = ConfigDict(extra="forbid")

    size: int
    blake2b: str


class Manifest(BaseModel):
    """The content of a manifest. Other entries are rejected, so that a damaged name is detected too."""

    model_config = ConfigDict(extra="forbid")

    stage: dict[str, Any]
    label: str
    made: dict[str, Any]
    files: dict[str, FileEntry]
    checksum: str = ""

    @field_validator("files")
    @classmethod
    def _check_paths(cls, files: dict[str, FileEntry]) -> dict[str, FileEntry]:
        """Reject names outside the stage's folder."""
        for name in files:
            try:
                inside(Path(), name)
            except TombolaError as error:
                raise ValueError(str(error)) from None
        return files


def verify(folder: Path) -> dict[str, Any]:
    """Check every file of a finished folder against its manifest, and return the manifest."""
    manifest = read_manifest(folder)
    for name, entry in manifest["files"].items():
        path = inside(folder, name)
        if not path.is_file():
            raise DamagedArtefact(f"{path} is missing; {_remedy(folder)}")
        if path.stat().st_size != entry["size"] or checksum(path) != entry["blake2b"]:
            raise DamagedArtefact(f"{path} was damaged after it was written; {_remedy(folder)}")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a finished folder."""
    try:
        content = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise DamagedArtefact(f"{folder} is not a finished stage: it has no {MANIFEST}") from None
    return parse_manifest(content, str(folder / MANIFEST), _remedy(folder))


def parse_manifest(content: bytes, where: str, remedy: str) -> dict[str, Any]:
    """Parse a manifest, and raise if it is damaged.

    Args:
        content: The bytes of the file.
        where: The name of the file, for messages.
        remedy: What to do about damage, for messages.
    """
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError:
        raise DamagedArtefact(f"{where} cannot be read; {remedy}") from None
    if not is_intact(content):
        raise DamagedArtefact(f"{where} was damaged after it was written; {remedy}")
    return manifest.model_dump()


def write_manifest(folder: Path, about: dict[str, Any]) -> None:
    """Write the manifest of a folder: its files with checksums, and the metadata `about`."""
    files = {
        str(path.relative_to(folder)): {"size": path.stat().st_size, "blake2b": checksum(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    with open(folder / MANIFEST, "w") as file:
        file.write(sealed({**about, "files": files}))
        file.flush()
        os.fsync(file.fileno())


def _remedy(folder: Path) -> str:
    return f"delete {folder} and run the same command again to create it again"
