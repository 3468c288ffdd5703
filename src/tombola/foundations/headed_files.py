"""Tombola's own safetensors files: tensors with a descriptive header."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from tombola.errors import DamagedArtefact, TombolaError

HEADER = "tombola"
"""The metadata key of the header."""


def write_headed(
    path: str | PathLike[str],
    what: str,
    tensors: Mapping[str, Any],
    header: str,
    metadata: Mapping[str, str],
    framework: Literal["numpy", "pt"],
) -> None:
    """Write tensors with a header.

    Args:
        path: The file.
        what: The kind of content, for messages: "mask".
        tensors: The arrays or tensors by name.
        header: The header, as JSON.
        metadata: Additional metadata.
        framework: Whether they are NumPy arrays or PyTorch tensors.
    """
    if framework == "numpy":
        from safetensors.numpy import save_file
    else:
        from safetensors.torch import save_file
    try:
        save_file(dict(tensors), path, {**metadata, HEADER: header})
    except (OSError, SafetensorError) as error:
        raise TombolaError(f"could not write the {what} to {path}: {error}.") from error


def read_headed(
    path: str | PathLike[str], what: str, framework: Literal["numpy", "pt"]
) -> tuple[dict[str, Any], str, dict[str, str]]:
    """Read the tensors of a file, its header, and the rest of its metadata.

    Args:
        path: The file.
        what: The expected kind of content, for messages: "mask".
        framework: Whether to return NumPy arrays or PyTorch tensors.
    """
    try:
        with safe_open(path, framework=framework) as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise TombolaError(f"there is no {what} file at {path}.") from error
    except (OSError, SafetensorError) as error:
        raise DamagedArtefact(
            f"{path} is not a readable safetensors file ({error}): copy or download it again."
        ) from error
    if HEADER not in metadata:
        raise TombolaError(f"{path} is a safetensors file, but not a {what} written by Tombola.")
    return tensors, metadata.pop(HEADER), metadata
