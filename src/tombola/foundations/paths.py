"""The only place where untrusted names and paths become paths."""

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from socket import gethostname

from tombola.errors import TombolaError

LONGEST = 120
"""Maximum length of a path part in bytes; file systems allow 255."""

_PLAIN = re.compile(r"[A-Za-z0-9 ._+=@,()\[\]-]")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")


def path_part(name: str) -> str:
    """Encode a name as one path part: never empty, hidden or reserved, and distinct for distinct names.

    Ordinary names are unchanged. Separators, control characters and the like are percent-encoded (`%2F`); a name that
    is too long ends in a hash of the whole.
    """
    encoded = "".join(character if _PLAIN.fullmatch(character) else _encode(character) for character in name)
    if encoded[:1] in (".", " ", "~"):
        encoded = _encode(encoded[0]) + encoded[1:]
    if encoded[-1:] in (".", " "):
        encoded = encoded[:-1] + _encode(encoded[-1])
    if not encoded or _RESERVED.fullmatch(encoded):
        encoded = f"%{encoded}"
    if len(encoded) > LONGEST:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        encoded = f"{encoded[: LONGEST - 17]}-{digest}"
    return encoded


def inside(base: Path, name: str) -> Path:
    """Return the path of a file below `base`, given an untrusted relative name.

    Raises:
        TombolaError: If the name leads outside `base`.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name or ":" in path.parts[0]:
        raise TombolaError(f"{name!r} is not the name of a file below {base}")
    return base.joinpath(*path.parts)


def twins(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that differ only in case, if any: some file systems use one folder for both.

    Args:
        names: The names of sibling folders.
    """
    seen: dict[str, str] = {}
    for name in names:
        if (other := seen.setdefault(path_part(name).casefold(), name)) != name:
            return other, name
    return None


def temporary_beside(path: Path) -> Path:
    """Return a unique temporary name beside a path, to write to and then rename.

    Leftovers of killed processes of this machine, or of this container, for the same path are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    node, beginning = _process_space(), os.fsencode(path.name)[:LONGEST].decode(errors="ignore")
    leftover = re.compile(rf"\.{re.escape(beginning)}\.{node}-(\d+)-[0-9a-f]{{32}}\.partial")
    for other in path.parent.iterdir():
        if (match := leftover.fullmatch(other.name)) and not _is_alive(int(match[1])):
            if other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink(missing_ok=True)
    return path.with_name(f".{beginning}.{node}-{os.getpid()}-{uuid.uuid4().hex}.partial")


def _process_space() -> str:
    """Identify where process ids mean the same: containers may share a network address, but number their own."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    text = f"{uuid.getnode():x} {gethostname()} {space}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    return True


def require_empty(folder: Path) -> None:
    """Raise an error if something exists at a path, other than an empty folder.

    Args:
        folder: The destination.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TombolaError(f"{folder} already exists: choose another folder, or delete it first")


@contextmanager
def replacing(folder: Path, marker: str) -> Iterator[Path]:
    """Yield a new folder that replaces `folder` when the block succeeds.

    Args:
        folder: The destination. An existing folder is replaced only if it is empty or contains `marker`, which shows
            that it was written in this way.
        marker: A file that every such folder contains.

    Raises:
        TombolaError: If `folder` is something else.
    """
    require_own(folder, marker)
    partial = temporary_beside(folder)
    partial.mkdir()
    try:
        yield partial
        old = temporary_beside(folder)
        require_own(folder, marker)
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            _take_place(partial, folder)
        except OSError:
            with suppress(OSError):
                old.rename(folder)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _take_place(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(partial, ignore_errors=True)  # another process has just written the same folder


def require_own(folder: Path, marker: str) -> None:
    """Raise an error if `replacing` would refuse to replace a folder.

    Args:
        folder: The destination.
        marker: A file that every folder of its kind contains.
    """
    # Checked twice, since another writer may be moving its folder away meanwhile.
    if _is_foreign(folder, marker) and _is_foreign(folder, marker):
        raise TombolaError(
            f"{folder} exists and was not written by tombola (it has no {marker}): choose another place, or move it"
        )


def _is_foreign(folder: Path, marker: str) -> bool:
    """Return whether something exists there other than a folder that is empty or contains the marker."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return folder.is_symlink()
    except NotADirectoryError:
        return True
    return bool(names) and marker not in names


def _encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
