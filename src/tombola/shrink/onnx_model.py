"""ONNX files with the interface of a transformers model, for evaluation, attacks and predictions."""

from __future__ import annotations

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.utils import ModelOutput

from tombola.errors import TombolaError
from tombola.foundations.checksums import checksum
from tombola.models.safety import open_config
from tombola.shrink.onnx_seal import check_onnx, parts_of
from tombola.shrink.runtime import open_session, run_session, try_session
from tombola.tasks import fitting_length

MODEL = "model.onnx"
"""The file name of the graph in a folder with its config and tokenizer."""
INT8 = "model.int8.onnx"
"""The file name of the graph with 8-bit weights."""


class OnnxModel(nn.Module):
    """A model that onnxruntime runs, from a file with its config beside it.

    Args:
        file: A file that `tombola export` or a run with `runtime: onnx` wrote, already tried on this machine.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.config = open_config(file.parent)
        self.session: Any = open_session(file)
        self.device = torch.device("cpu")
        self.dtype = torch.float32

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the file, and of the weights beside it if the graph is too large for one file."""
        return " ".join(checksum(part) for part in parts_of(self.file))

    def forward(self, **inputs: Tensor) -> ModelOutput:
        """Return the outputs of the graph by name; inputs that it does not read are ignored."""
        return ModelOutput(**run_session(self.session, inputs))


def find_onnx(folder: Path) -> Path | None:
    """Return the ONNX file of a folder without other weights; the 32-bit one if there are two.

    Args:
        folder: A model folder.
    """
    if any(folder.glob("*.safetensors")):
        return None
    return next((folder / name for name in (MODEL, INT8) if (folder / name).is_file()), None)


def open_onnx(file: Path) -> OnnxModel:
    """Open an ONNX classifier, after a trial in a child process.

    Args:
        file: The `.onnx` file; its config is beside it.
    """
    if find_spec("onnxruntime") is None:
        raise TombolaError(f"{file} needs onnxruntime: pip install 'tombola[onnx]'.")
    check_onnx(file)
    config = open_config(file.parent)
    shapes = [(1, fitting_length(8, config)), (8, fitting_length(32, config))]
    try_session(file, shapes, file.name, "export the model again on this machine", outcome="")
    model = OnnxModel(file)
    if "logits" not in [output.name for output in model.session.get_outputs()]:
        raise TombolaError(f"{file} has no logits: export a model with a head, which has learned a task.")
    return model
