"""Convert old checkpoints with `pruned_heads`, which transformers 5 no longer reads, into shrunk models.

transformers 4 cut the rows of query, key and value and the columns of the output projection, and listed the removed
heads in the config. A shrunk folder has the same tensors, and lists the remaining heads instead.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel

from tombola.errors import ModelError
from tombola.foundations.checksums import CHECKSUMS, write_checksums
from tombola.masks import Layout
from tombola.models.safety import read_config
from tombola.shrink.folders import (
    config_from,
    copy_companions,
    load_model,
    require_safetensors,
    written_whole,
)
from tombola.shrink.shape import LayerShape, ModelShape


def convert_pruned_heads(old: str | Path, new: str | Path) -> ModelShape:
    """Write a folder whose config has `pruned_heads` as a shrunk folder, and return its shape.

    Args:
        old: A model folder with `pruned_heads` in its config.
        new: The folder to write.
    """
    old, new = Path(old), Path(new)
    config = read_config(old)
    weights = require_safetensors(old)
    pruned = config.pop("pruned_heads", None)
    if not pruned:
        raise ModelError(f"{old} has no pruned_heads in its config.json, so there is nothing to convert.")
    shape = _shape(config, pruned, old)
    with written_whole(new) as folder:
        config["quantization_config"] = shape.model_dump(mode="json")
        (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
        for file in weights:
            shutil.copyfile(file, folder / file.name)
        copy_companions(old, folder, without=(CHECKSUMS,))
        load_model(folder)
        write_checksums(folder)
    return shape


def _shape(config: dict[str, Any], pruned: dict[str, list[int]], folder: Path) -> ModelShape:
    with torch.device("meta"):
        layout = Layout.of(AutoModel.from_config(config_from(config)))
    gone = {int(layer): set(heads) for layer, heads in pruned.items()}
    present = {index: set(range(layout.heads(index))) for index in layout.layers()}
    for layer, heads in gone.items():
        if not heads <= present.get(layer, set()):
            raise ModelError(
                f"{folder}: pruned_heads lists heads {sorted(heads)} of layer {layer}, but the model has no such heads."
            )
    return ModelShape(
        layers=tuple(
            LayerShape(
                heads=tuple(sorted(present[index] - gone.get(index, set()))), neurons=roles["up"].outputs
            )
            for index, roles in layout.layers().items()
        )
    )
