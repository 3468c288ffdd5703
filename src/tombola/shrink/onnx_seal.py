"""The checksum of an ONNX file, inside the file: it stays with it wherever the file goes.

An ONNX file is a protobuf message, and such a message may be written in parts: an entry of metadata that is appended to
the file is one of its metadata. It holds the hash of all bytes before it, and that of the weights beside the file where
the graph is too large for one.
"""

import hashlib
from pathlib import Path

from tombola.errors import DamagedArtefact
from tombola.foundations.checksums import checksum
from tombola.foundations.paths import inside

KEY = b"tombola.checksum"
TAIL = 1024  # bytes at the end of a file among which the entry is
CHUNK = 1 << 20
METADATA, NAME, VALUE = 0x72, 0x0A, 0x12  # tags of ModelProto.metadata_props, and of an entry's key and value


def seal_onnx(file: Path) -> None:
    """Append the checksum to a finished ONNX file.

    Args:
        file: The graph; weights beside it have its name and a further ending.
    """
    weights = [part for part in sorted(file.parent.glob(f"{file.name}.*")) if part.is_file()]
    hashes = [_hash(file, file.stat().st_size), *(f"{part.name}={checksum(part)}" for part in weights)]
    with open(file, "ab") as end:
        end.write(_entry(" ".join(hashes).encode()))


def check_onnx(file: Path) -> None:
    """Compare an ONNX file with the checksum in it; a file without any, such as another program's, is taken as it is.

    Args:
        file: The graph.

    Raises:
        DamagedArtefact: If it is not as it was written.
    """
    size = file.stat().st_size
    with open(file, "rb") as content:
        content.seek(max(0, size - TAIL))
        tail = content.read()
    _, found, rest = tail.rpartition(KEY)
    if not found:
        return
    value = rest.lstrip(bytes([VALUE]))
    value = value[1 + (value[:1] > b"\x7f") :]  # behind its length
    entry = _entry(value)
    graph, *weights = value.decode("utf-8", "replace").split(" ")
    intact = tail.endswith(entry) and _hash(file, size - len(entry)) == graph
    for part in weights:
        name, _, known = part.rpartition("=")
        intact = intact and (beside := inside(file.parent, name)).is_file() and checksum(beside) == known
    if not intact:
        raise DamagedArtefact(f"{file} is not as it was written: it was damaged; export the model again")


def _hash(file: Path, size: int) -> str:
    """The hash of the first bytes of a file."""
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
    """One entry of metadata, as protobuf writes it."""
    inner = bytes([NAME]) + _sized(KEY) + bytes([VALUE]) + _sized(value)
    return bytes([METADATA]) + _sized(inner)


def _sized(content: bytes) -> bytes:
    """Bytes behind their number, seven bits at a time."""
    number, size = len(content), b""
    while number > 127:
        size, number = size + bytes([number & 127 | 128]), number >> 7
    return size + bytes([number]) + content
