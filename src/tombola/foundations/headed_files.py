"""Safetensors files that Tombola writes itself: tensors, and a header that says what they are."""

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

from safetensors import SafetensorError, safe_open

from tombola.errors import DamagedArtefact, TombolaError

HEADER = "tombola"
"""The key of the metadata that holds the header."""


def write_headed(
    path: str | PathLike[str],
    what: str,
    tensors: Mapping[str, Any],
    header: str,
    metadata: Mapping[str, str],
    framework: Literal["numpy", "pt"],
) -> None:
    """Write tensors under a header.

    Args:
        path: The file.
        what: What the file holds, for messages: "mask".
        tensors: The arrays or tensors by name.
        header: What the file says of itself, as JSON.
        metadata: Further entries beside the header.
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
    """The tensors of a file, its header, and the rest of its metadata.

    Args:
        path: The file.
        what: What the file should hold, for messages: "mask".
        framework: Whether to give NumPy arrays or PyTorch tensors.
    """
    try:
        with safe_open(path, framework=framework) as file:
            metadata = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise TombolaError(f"there is no {what} file at {path}.") from error
    except (OSError, SafetensorError) as error:
        raise DamagedArtefact(
            f"{path} is not a readable safetensors file ({error}): get it again."
        ) from error
    if HEADER not in metadata:
        raise TombolaError(f"{path} is a safetensors file, but not a {what} written by Tombola.")
    return tensors, metadata.pop(HEADER), metadata
