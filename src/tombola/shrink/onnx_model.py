"""ONNX files that are called as models of transformers are: for evaluation, attacks and predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig
from transformers.utils import ModelOutput

from tombola.shrink.runtime import open_session, run_session

MODEL = "model.onnx"
"""The name of the graph inside a folder with its config and tokenizer."""


class OnnxModel(nn.Module):
    """A model that onnxruntime runs, from a folder with a config.

    Args:
        folder: What `tombola export` or a run with `runtime: onnx` wrote.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        self.session: Any = open_session(folder / MODEL)
        self.device = torch.device("cpu")
        self.dtype = torch.float32

    def forward(self, **inputs: Tensor) -> ModelOutput:
        """The outputs of the graph by name; inputs that it does not read are left out."""
        return ModelOutput(**run_session(self.session, inputs))
