"""A checksum of an ONNX file, stored inside the file so that it travels along.

An ONNX file is a protobuf message, and protobuf messages may be concatenated: a metadata entry appended to the file
becomes part of its metadata. The entry holds the hash of all bytes before it, and of the weights beside the file if
the graph is too large for one file.
"""

import hashlib
from glob import escape
from pathlib import Path

from tombola.errors import DamagedArtefact
from tombola.foundations.checksums import checksum
from tombola.foundations.paths import inside

KEY = b"tombola.checksum"
TAIL = 1024  # bytes at the end of a file that contain the entry
CHUNK = 1 << 20
METADATA, NAME, VALUE = 0x72, 0x0A, 0x12  # tags of ModelProto.metadata_props, and of an entry's key and value


def parts_of(file: Path) -> list[Path]:
    """Return an ONNX file, and the weight files beside it, which have its name plus a suffix.

    Args:
        file: The graph.
    """
    return [part for part in sorted(file.parent.glob(f"{escape(file.name)}*")) if part.is_file()]


def seal_onnx(file: Path) -> None:
    """Append the checksum to a finished ONNX file.

    Args:
        file: The graph; weight files beside it have its name plus a suffix.
    """
    weights = [part for part in parts_of(file) if part != file]
    hashes = [_hash(file, file.stat().st_size), *(f"{part.name}={checksum(part)}" for part in weights)]
    with open(file, "ab") as end:
        end.write(_entry(" ".join(hashes).encode()))


def check_onnx(file: Path) -> None:
    """Verify the checksum in an ONNX file; a file without one, such as another program's, is accepted.

    Args:
        file: The graph.

    Raises:
        DamagedArtefact: If the file has changed.
    """
    size = file.stat().st_size
    with open(file, "rb") as content:
        content.seek(max(0, size - TAIL))
        tail = content.read()
    _, found, rest = tail.rpartition(KEY)
    if not found:
        return
    value = rest.lstrip(bytes([VALUE]))
    value = value[1 + (value[:1] > b"\x7f") :]  # after its length
    entry = _entry(value)
    graph, *weights = value.decode("utf-8", "replace").split(" ")
    intact = tail.endswith(entry) and _hash(file, size - len(entry)) == graph
    for part in weights:
        name, _, digest = part.rpartition("=")
        intact = intact and (beside := inside(file.parent, name)).is_file() and checksum(beside) == digest
    if not intact:
        raise DamagedArtefact(f"{file} was damaged or changed after it was written: export the model again")


def _hash(file: Path, size: int) -> str:
    """Return the hash of the first `size` bytes of a file."""
    digest = hashlib.blake2b(digest_size=16)
    with open(file, "rb") as content:
        while size > 0:
            block = content.read(min(CHUNK, size))
            if not block:
                break
            digest.update(block)
            size -= len(block)
    return digest.hexdigest()


def _entry(value: bytes) -> bytes:
    """Encode one metadata entry as protobuf."""
    inner = bytes([NAME]) + _sized(KEY) + bytes([VALUE]) + _sized(value)
    return bytes([METADATA]) + _sized(inner)


def _sized(content: bytes) -> bytes:
    """Prefix bytes with their length as a protobuf varint."""
    number, size = len(content), b""
    while number > 127:
        size, number = size + bytes([number & 127 | 128]), number >> 7
    return size + bytes([number]) + content
