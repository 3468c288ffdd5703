"""Read tensors that other programs saved with `torch.save`, without running any code in the files."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tombola.errors import DataError

LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""The first bytes of files in the format from before torch 1.6."""


def read_tensors(source: Path) -> dict[str, Tensor]:
    """Read the tensors of a file by name, or of a folder of files.

    Files are loaded with `weights_only=True`, and only if they look like PyTorch's own. A file that holds anything
    but tensors is rejected.
    """
    if not source.is_dir():
        return _load(source)
    if (source / "mask.pt").is_file():
        return _load(source / "mask.pt")
    files = sorted(path for path in source.iterdir() if path.suffix in (".pt", ".bin", ".pth"))
    if not files:
        raise DataError(f"{source}: has neither a mask.pt nor files of tensors (.pt, .pth, .bin).")
    tensors: dict[str, Tensor] = {}
    for file in files:
        named = _load(file)
        if twice := sorted(tensors.keys() & named.keys()):
            raise DataError(
                f"{source}: {file.name} and a file before it both contain {twice[0]!r}: give one file."
            )
        tensors |= named
    return tensors


def _load(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name; a single one is named after the file."""
    _require_tensors(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise DataError(
            f"{path}: contains more than tensors, and is not loaded, since a pickle can run any code "
            f"({_reason(error)}). Save only the tensors: torch.save({{name: mask for name, mask in ...}}, 'mask.pt')"
        ) from None
    except (RuntimeError, OSError, EOFError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is damaged ({_reason(error)}): copy or download it again.") from None
    if isinstance(content, Tensor):
        content = {path.stem: content}
    if not isinstance(content, dict):
        raise DataError(f"{path}: contains a {type(content).__name__} instead of tensors by name.")
    return {str(name): _plain(path, str(name), value) for name, value in content.items()}


def _require_tensors(path: Path) -> None:
    try:
        with open(path, "rb") as file:
            first = file.read(32)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from None
    if first.startswith(LEGACY):
        return
    if first.startswith(b"PK\x03\x04") and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if any(name.endswith("data.pkl") for name in archive.namelist()):
                return
        raise DataError(f"{path}: is a zip archive, but not one written by torch.save.")
    raise DataError(f"{path}: is not a file of tensors written by torch.save; it is {_kind(first)}.")


def _kind(first: bytes) -> str:
    if not first:
        return "empty"
    if first[:1] == b"\x80" or first[:2] in (b"(d", b"(l", b"cp"):
        return "a plain pickle, which can run any code and is not loaded"
    if first[8:9] == b"{":
        return "a safetensors file"
    if first.lstrip()[:1] in (b"{", b"["):
        return "JSON"
    return "something else"


def _plain(path: Path, name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise DataError(f"{path}: {name!r} is a {type(value).__name__}, not a tensor.")
    if value.layout != torch.strided or value.is_quantized or value.is_complex():
        raise DataError(f"{path}: {name!r} is not an ordinary tensor ({value.layout}, {value.dtype}).")
    return value.detach()


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if "GLOBAL" in line or "Unsupported" in line]
    return (named or lines or [type(error).__name__])[0][:200].rstrip(".")
