"""Models as ONNX, for any batch and length, checked against PyTorch before anybody else runs them."""

import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn
from transformers import PreTrainedModel

from tombola.errors import TombolaError
from tombola.shrink.folders import load_model
from tombola.shrink.inputs import largest_difference, longest_input, outputs_of, random_inputs

BATCHES_AND_LENGTHS = ((1, 5), (2, 16), (5, 33), (3, 128))
TOLERANCE = 1e-4
TEXTS = 64  # on which the int8 model's decisions are compared
ONE_FILE = 1_500_000_000  # bytes; protobuf ends at 2 GB, so larger models keep their weights beside the graph


class Int8(BaseModel):
    """The dynamically quantised model, and how often it decides as the original does."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    bytes: int
    max_difference: float
    agreement: float


class Export(BaseModel):
    """An exported model: where it is, and how far its outputs are from PyTorch's on the shapes tried."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    bytes: int
    shapes: list[tuple[int, int]]
    max_difference: float
    int8: Int8 | None = None


def export_onnx(source: PreTrainedModel | str | Path, path: str | Path, int8: bool = False) -> Export:
    """Write a model, or a folder's model, as float32 ONNX with dynamic batch and length; a shrunk one too.

    onnxruntime must agree with PyTorch on several shapes, padded texts included, or nothing is written.
    `int8` also writes a version with 8-bit weights (`….int8.onnx`), which is only approximately the same.
    """
    _require_packages()
    model = source if isinstance(source, PreTrainedModel) else load_model(Path(source))
    if model.dtype != torch.float32:
        model = deepcopy(model).float()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        draft = Path(folder) / path.name
        large = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters()) > ONE_FILE
        with _quiet():
            _write(model.eval(), draft, large)
        longest = longest_input(model.config)
        shapes = [(batch, min(length, longest)) for batch, length in BATCHES_AND_LENGTHS]
        difference = _check(model, draft, shapes)
        with _quiet():
            quantised = _quantise(model, draft, large) if int8 else None
        size = sum(file.stat().st_size for file in Path(folder).iterdir() if ".int8." not in file.name)
        for file in list(Path(folder).iterdir()):
            shutil.move(file, path.parent / file.name)
    if quantised is not None:
        quantised = quantised.model_copy(update={"path": path.parent / quantised.path.name})
    return Export(path=path, bytes=size, shapes=shapes, max_difference=difference, int8=quantised)


class _Tensors(nn.Module):
    """The model as a function of tensors to tensors, without caches and output classes."""

    def __init__(self, model: PreTrainedModel, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.model(**dict(zip(self.names, inputs, strict=True)))
        return tuple(value for value in outputs.values() if isinstance(value, Tensor))


def _write(model: PreTrainedModel, path: Path, large: bool) -> None:
    inputs = random_inputs(model, 2, min(9, longest_input(model.config)), padded=True)
    torch.onnx.export(
        _Tensors(model, list(inputs)).eval(),
        tuple(inputs.values()),
        path,
        dynamo=True,
        input_names=list(inputs),
        output_names=list(outputs_of(model, inputs)),
        dynamic_shapes=(tuple({0: "batch", 1: "length"} for _ in inputs),),
        external_data=large,
        verbose=False,
    )


def _check(model: PreTrainedModel, path: Path, shapes: list[tuple[int, int]]) -> float:
    session, largest = _session(path), 0.0
    for seed, (batch, length) in enumerate(shapes):
        inputs = random_inputs(model, batch, length, padded=True, seed=seed)
        expected = outputs_of(model, inputs)
        difference = largest_difference(expected, _run(session, inputs))
        scale = max(1.0, *(float(value.abs().max()) for value in expected.values()))
        if not difference <= TOLERANCE * scale:
            raise TombolaError(
                f"the ONNX model differs from PyTorch by {difference:.2g} at batch {batch} and length {length}, "
                f"so it was not written: try another version of torch and onnxruntime."
            )
        largest = max(largest, difference)
    return largest


def _quantise(model: PreTrainedModel, path: Path, large: bool) -> Int8:
    quantization = import_module("onnxruntime.quantization")
    target = path.with_suffix(".int8.onnx")
    signed = quantization.QuantType.QInt8
    exported = import_module("onnx").load(path)
    # The quantiser transposes matrices and then trips over the shapes recorded for them.
    exported.graph.ClearField("value_info")
    quantization.quantize_dynamic(exported, target, weight_type=signed, use_external_data_format=large)
    inputs = random_inputs(model, TEXTS, min(32, longest_input(model.config)), padded=True)
    expected, actual = outputs_of(model, inputs), _run(_session(target), inputs)
    first = next(iter(expected))
    same = _decisions(model, expected[first]) == _decisions(model, actual[first])
    return Int8(
        path=target,
        bytes=sum(file.stat().st_size for file in path.parent.glob(f"{target.name}*")),
        max_difference=largest_difference(expected, actual),
        agreement=float(same.float().mean()),
    )


def _decisions(model: PreTrainedModel, outputs: Tensor) -> Tensor:
    """What the model decides on: a label for each text, token or end of an answer, or yes or no for every label."""
    if model.config.problem_type == "multi_label_classification":
        return outputs > 0
    return outputs.argmax(dim=-1)


def _session(path: Path) -> Any:
    runtime = import_module("onnxruntime")
    return runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def _run(session: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    names = [output.name for output in session.get_outputs()]
    values = session.run(names, {name: value.cpu().numpy() for name, value in inputs.items()})
    return {name: torch.from_numpy(value) for name, value in zip(names, values, strict=True)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' warnings about packages and names that do not concern the model."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level)


def _require_packages() -> None:
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise TombolaError(f"export to ONNX needs {', '.join(missing)}: pip install 'tombola[onnx]'.")
