"""Open model folders by their config, and write them completely or not at all."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig, PreTrainedModel

from tombola.errors import ModelError
from tombola.foundations.paths import require_empty, temporary_beside
from tombola.models.finding import MODEL_FILES
from tombola.models.loading import open_model
from tombola.models.safety import read_config

WEIGHTS = "model*.safetensors"
CHAT_TEMPLATES = "additional_chat_templates"
"""The folder for a tokenizer's named chat templates."""


def config_from(data: dict[str, Any]) -> PretrainedConfig:
    """Return a config of the proper class from its JSON."""
    try:
        return type(AutoConfig.for_model(data["model_type"])).from_dict(data)
    except (KeyError, ValueError) as error:
        raise ModelError(f"transformers does not know the model type of this config: {error}.") from None


def require_safetensors(folder: Path) -> list[Path]:
    """Return the weight files of a model folder; pickled weights are rejected."""
    files = sorted(folder.glob(WEIGHTS))
    if not files:
        raise ModelError(
            f"{folder} has no .safetensors weights. Pickled weights are not loaded, since they can run any code: "
            "save them again with save_pretrained in an environment that you trust."
        )
    return files


def load_model(folder: Path, **options: Any) -> PreTrainedModel:
    """Load the model of a folder, in the architecture of its config and the precision of its weights."""
    read_config(folder)
    require_safetensors(folder)
    return open_model(folder, **options)


def copy_companions(source: Path, target: Path, without: tuple[str, ...] = ()) -> None:
    """Copy the files beside the weights (such as the tokenizer), unless excluded or already in the target."""
    for file in source.iterdir():
        beside = file.suffix in MODEL_FILES and file.suffix != ".safetensors" and file.name not in without
        if beside and not (target / file.name).exists():
            shutil.copyfile(file, target / file.name)
    if (source / CHAT_TEMPLATES).is_dir():
        (target / CHAT_TEMPLATES).mkdir(exist_ok=True)
        copy_companions(source / CHAT_TEMPLATES, target / CHAT_TEMPLATES)


@contextmanager
def written_whole(output: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `output` on success and deleted on failure."""
    require_empty(output)
    partial = temporary_beside(output)
    partial.mkdir()
    try:
        yield partial
        if output.exists():
            output.rmdir()
        partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
