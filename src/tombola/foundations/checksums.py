"""Checksums of files and folders, to detect damage when they are read."""

import errno
import hashlib
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tombola.errors import DamagedArtefact
from tombola.foundations.paths import inside, temporary_beside

CHECKSUMS = "checksums.json"
"""The file in a folder with the checksums of the other files."""

_SEAL = re.compile(rb'"checksum": ?"([^"]*)"')
_BLANK = "0" * 32


def checksum(path: Path) -> str:
    """Return the hash of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def hash_text(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def write_checksums(folder: Path, without: Collection[str] = (), only: Collection[str] = ()) -> None:
    """Write the checksums of the files below a folder.

    Args:
        folder: The complete folder.
        without: Names of files that users may change, such as README.md.
        only: Names of the files to include, if the folder may hold others.
    """
    files = {
        path.relative_to(folder).as_posix(): checksum(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in (*without, CHECKSUMS)
        if not only or path.relative_to(folder).as_posix() in only
    }
    write_whole(folder / CHECKSUMS, sealed({"files": files}))


def check_checksums(folder: Path, remedy: str) -> None:
    """Verify a folder against its checksums; a folder without any is accepted.

    Args:
        folder: The folder.
        remedy: Advice for the error message.

    Raises:
        DamagedArtefact: If a file is missing or has changed.
    """
    path = folder / CHECKSUMS
    if not path.is_file():
        return
    try:
        content = path.read_bytes()
        files = json.loads(content)["files"]
        if not is_intact(content, required=True):
            raise ValueError
        wrong = [name for name, digest in files.items() if _content(folder, name) != digest]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedArtefact(f"{path} cannot be read: it is damaged; {remedy}") from None
    if wrong:
        raise DamagedArtefact(f"{folder / wrong[0]} does not match its checksum: it is damaged; {remedy}")


def _content(folder: Path, name: str) -> str | None:
    file = inside(folder, name)
    return checksum(file) if file.is_file() else None


def sealed(content: dict[str, Any]) -> str:
    """Return a JSON object with a checksum of its own text as the last entry."""
    text = json.dumps({**content, "checksum": _BLANK}, indent=1, allow_nan=False)
    return seal(text)


def seal(text: str) -> str:
    """Insert the checksum into a JSON text whose entry `checksum` consists of 32 zeros."""
    before, _, after = text.rpartition(_BLANK)
    return f"{before}{hash_text(text)}{after}"


def is_intact(content: bytes, required: bool = False) -> bool:
    """Return whether a JSON text matches its checksum.

    Args:
        content: The bytes of the file.
        required: Whether a text without a checksum fails.
    """
    *_, last = [None, *_SEAL.finditer(content)]
    if last is None or not last[1]:
        return not required
    blank = content[: last.start(1)] + _BLANK.encode() + content[last.end(1) :]
    return hashlib.blake2b(blank, digest_size=16).hexdigest().encode() == last[1]


def write_whole(path: Path, text: str, **options: Any) -> None:
    """Write a text file atomically, safe against concurrent writers.

    Args:
        path: The file.
        text: Its content.
        **options: As for `Path.write_text`; the encoding is UTF-8.

    Raises:
        OSError: If the file cannot be written. It names the file itself, not the temporary one.
    """
    with _beside(path) as temporary:
        temporary.write_text(text, **{"encoding": "utf-8", **options})
        temporary.replace(path)


def require_place(path: Path) -> None:
    """Raise an error before the work if `write_whole` could not write a file.

    Args:
        path: The file.

    Raises:
        OSError: If the file cannot be written.
    """
    with _beside(path) as temporary:
        temporary.touch()


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file beside a file, which errors name instead; remove what is left of it."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file", str(path))
    temporary = temporary_beside(path)
    try:
        yield temporary
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):  # a read-only disk refuses even what there is not
            temporary.unlink(missing_ok=True)
