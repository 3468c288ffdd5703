"""Load other people's models safely: only safetensors, no remote code, and a clear error for damaged files."""

import json
from pathlib import Path
from typing import Any

from tombola.errors import ModelError
from tombola.foundations.checksums import CHECKSUMS, check_checksums

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""The exceptions of transformers and torch for invalid files."""


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of a model folder's config.json."""
    if not (folder / CONFIG).is_file():
        raise ModelError(f"{folder} has no {CONFIG}, so it is not a model folder")
    return read_object(folder / CONFIG)


def check_folder(folder: Path) -> None:
    """Reject a model folder that would load a pickle or run its own code.

    Raises:
        ModelError: If the folder is rejected.
        DamagedArtefact: If a file does not match its checksum.
    """
    check_checksums(
        folder, f"copy or create it again; if you changed it on purpose, delete {folder / CHECKSUMS}"
    )
    config = read_config(folder)
    if (folder / INDEX).is_file():
        files = read_object(folder / INDEX).get("weight_map", {})
        names = set(files.values()) if isinstance(files, dict) else {str(files)}
        for name in sorted(map(str, names)):
            if not name.endswith(".safetensors") or Path(name).name != name:
                raise ModelError(
                    f"{folder / INDEX} names {name!r}, which is not a safetensors file in the same folder: it is not "
                    "loaded. Save the model again with `model.save_pretrained(folder)`"
                )
    pickles = [path.name for path in sorted(folder.glob("pytorch_model*.bin"))]
    if pickles and not any(folder.glob("*.safetensors")) and not any(folder.glob("*.onnx")):
        raise ModelError(
            f"{folder} has only pickled weights ({pickles[0]}). They are not loaded, since unpickling can run code: "
            "open the model with its own library, and save it again with `model.save_pretrained(folder)`"
        )
    if config.get("auto_map") and not _is_known(config.get("model_type")):
        raise ModelError(
            f"{folder}: its {CONFIG} refers to code that comes with the model (auto_map). Tombola does not run such "
            "code: use a model type that is built into transformers"
        )


def open_pretrained(kind: Any, folder: Path, **options: Any) -> Any:
    """Call `kind.from_pretrained(folder)` for safetensors weights, without remote code or network.

    Raises:
        ModelError: If the folder is rejected, or a file in it is damaged.
    """
    from safetensors import SafetensorError
    from torch import OutOfMemoryError

    check_folder(folder)
    try:
        return kind.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False, local_files_only=True, **options
        )
    except SafetensorError as error:
        raise ModelError(f"{_damaged(folder)} is damaged ({error}): copy or save it again") from None
    except (MemoryError, OutOfMemoryError):
        raise
    except UNREADABLE as error:
        if str(error).startswith("Unrecognized configuration class"):
            raise  # the caller knows which task wanted it
        raise ModelError(
            f"{folder} cannot be opened as a model ({_reason(error)}): its files do not belong together, or one is "
            "damaged. Copy or save it again"
        ) from error


def open_config(folder: Path) -> Any:
    """Load a model folder's config with transformers.

    Raises:
        ModelError: If the folder is rejected, or transformers cannot read its config.
    """
    from transformers import AutoConfig

    check_folder(folder)
    try:
        return AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except UNREADABLE as error:
        raise ModelError(
            f"{folder / CONFIG} cannot be read ({_reason(error)}): copy or save it again"
        ) from error


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _is_known(model_type: object) -> bool:
    from transformers import CONFIG_MAPPING

    return model_type in CONFIG_MAPPING


def _damaged(folder: Path) -> Path:
    """Return the first safetensors file of a folder that cannot be opened, or the folder itself."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="np") as file:
                file.keys()
        except SafetensorError:
            return path
    return folder


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file of a model folder."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not valid JSON ({error}): copy or save it again") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror})") from None
    if not isinstance(content, dict):
        raise ModelError(f"{path} does not contain a JSON object: copy or save it again")
    return content
