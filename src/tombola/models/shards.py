"""Read the tensors of a model folder one by one, and overwrite them in a copy of its safetensors files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import ModelError
from tombola.foundations.lazy import lazy_module
from tombola.models.safety import INDEX, check_folder

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    torch = lazy_module("torch")

SINGLE = "model.safetensors"
DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The dtypes of weights that can be pruned, in safetensors and in torch."""

PIECE = 1 << 22
"""Numbers read at once."""


@dataclass(frozen=True)
class Entry:
    """The location of a tensor: a file and a byte range."""

    file: str
    format: str
    shape: tuple[int, ...]
    start: int
    end: int

    def check_dtype(self) -> None:
        """Raise if the weights cannot be pruned, such as quantised ones."""
        if self.format not in DTYPES:
            raise ModelError(
                f"{self.file} stores weights as {self.format}, but only {', '.join(DTYPES)} can be pruned: convert "
                "the model to one of these first"
            )

    @property
    def dtype(self) -> torch.dtype:
        """The torch dtype."""
        self.check_dtype()
        dtype: torch.dtype = getattr(torch, DTYPES[self.format])
        return dtype


class Shards:
    """The tensors of a model folder by name, read on demand.

    Args:
        folder: A folder with one safetensors file, or with several and their index.
    """

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.folder = folder
        self.entries: dict[str, Entry] = {}
        for name in _files(folder):
            self.entries |= _header(folder / name)

    @property
    def files(self) -> list[str]:
        """The names of the safetensors files."""
        return list(dict.fromkeys(entry.file for entry in self.entries.values()))

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        return sum(entry.end - entry.start for entry in self.entries.values())

    def first_of(self, names: Iterable[str]) -> str | None:
        """Return the first of some names that has a tensor."""
        return next((name for name in names if name in self.entries), None)

    def read(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """Read a tensor into its own memory, without keeping the file mapped.

        Args:
            name: The tensor.
            dtype: The dtype to convert to while reading; by default the stored one.
        """
        entry = self.entries[name]
        tensor = torch.empty(entry.shape, dtype=dtype or entry.dtype)
        flat, width = tensor.view(-1), entry.dtype.itemsize
        with open(self.folder / entry.file, "rb", buffering=0) as file:
            file.seek(entry.start)
            for start in range(0, len(flat), PIECE):
                piece = flat[start : start + PIECE]
                content = bytearray(len(piece) * width)
                _read_into(file, content)
                piece.copy_(torch.frombuffer(content, dtype=entry.dtype))
        return tensor

    def overwrite(self, folder: Path, name: str, values: Tensor) -> None:
        """Overwrite a tensor in a copy of this folder's files.

        Args:
            folder: The folder of the copy.
            name: The tensor.
            values: Values of the same shape, stored in the tensor's dtype.
        """
        entry = self.entries[name]
        assert tuple(values.shape) == entry.shape
        plain = values.detach().to("cpu", entry.dtype).contiguous().view(torch.uint8).numpy()
        with open(folder / entry.file, "r+b") as file:
            file.seek(entry.start)
            file.write(plain.data)


def _read_into(file: FileIO, content: bytearray) -> None:
    view, done = memoryview(content), 0
    while done < len(content):
        count = file.readinto(view[done:])
        if not count:
            raise ModelError(f"{file.name} is truncated: copy or save it again")
        done += count


def _files(folder: Path) -> list[str]:
    """Return the files that transformers opens: the single one, even if there is also an index."""
    if (folder / SINGLE).is_file():
        return [SINGLE]
    index = folder / INDEX
    if not index.is_file():
        raise ModelError(
            f"{folder} has neither {SINGLE} nor {INDEX}: save the model with `model.save_pretrained(folder)`"
        )
    return sorted(set(json.loads(index.read_bytes())["weight_map"].values()))


def _header(path: Path) -> dict[str, Entry]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:  # checks header and size
            file.keys()
        with open(path, "rb") as content:
            (length,) = struct.unpack("<Q", content.read(8))
            header = json.loads(content.read(length))
    except (OSError, SafetensorError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}): copy or save it again") from None
    return {
        name: Entry(
            path.name,
            entry["dtype"],
            tuple(entry["shape"]),
            *(8 + length + offset for offset in entry["data_offsets"]),
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }
