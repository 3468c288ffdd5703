"""Write models as ONNX, in 32 bits and with 8-bit weights, and check that they run and agree with PyTorch."""

import logging
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from tombola.errors import TombolaError
from tombola.foundations.paths import temporary_beside
from tombola.shrink.inputs import agree, largest_difference, outputs_of, random_inputs
from tombola.shrink.onnx_attention import can_fuse, fused_attention, standard_attention
from tombola.shrink.onnx_graph import keep_norms_apart
from tombola.shrink.onnx_seal import parts_of
from tombola.shrink.runtime import open_session, run_session, try_session
from tombola.tasks import fitting_length

BATCHES_AND_LENGTHS = ((1, 5), (2, 16), (5, 33), (3, 128))
ONE_FILE = 1_500_000_000  # bytes; protobuf ends at 2 GB, so larger models keep their weights beside the graph


@contextmanager
def drafts(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside a file, on the same disk, for unfinished files."""
    folder = temporary_beside(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Written(NamedTuple):
    """The batch sizes and lengths at which outputs were compared with PyTorch's, and the largest difference."""

    shapes: list[tuple[int, int]]
    max_difference: float


def write_onnx(
    model: PreTrainedModel,
    path: Path,
    also: Sequence[tuple[int, int]] = (),
    *,
    token_types: bool = True,
    fused: bool = False,
) -> Written:
    """Write a model in eval mode as float32 ONNX, and try it.

    Args:
        model: A float32 model on the CPU, with a padding token.
        path: The file to write.
        also: Further shapes (batch, length) at which the file will be run.
        token_types: Whether token types are an input of the file.
        fused: Whether attention may be one operator of onnxruntime, which other runtimes do not have.

    Raises:
        TombolaError: If onnxruntime does not run the file here, or does not agree with PyTorch.
    """
    require_packages()
    large = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters()) > ONE_FILE
    inputs = random_inputs(model, 2, fitting_length(9, model.config), padded=True, token_types=token_types)
    with _quiet(), _attention(model, inputs, fused):
        _write(model, path, inputs, large)
    shapes = shapes_to_try(model.config)
    try_session(path, [*shapes, *also], "float32", "try another version of onnxruntime")
    return Written(shapes, _check(model, path, shapes, token_types))


def quantise_onnx(
    model: PreTrainedModel, path: Path, also: Sequence[tuple[int, int]] = (), *, token_types: bool = True
) -> None:
    """Write a model as ONNX with 8-bit weights, and try it. The arguments are those of `write_onnx`.

    Attention becomes one operator of onnxruntime if the model's attention allows it.

    Raises:
        TombolaError: If onnxruntime does not run the file here.
    """
    require_packages()
    with drafts(path) as folder:
        draft = folder / path.name
        try:
            write_onnx(model, draft, also, token_types=token_types, fused=True)
        except (TombolaError, torch.onnx.OnnxExporterError):
            write_onnx(model, draft, also, token_types=token_types)
        _quantise(draft, path)
    try_session(path, [*shapes_to_try(model.config), *also], "int8", "export it without --int8")


def _quantise(path: Path, target: Path) -> None:
    onnx, quantization = import_module("onnx"), import_module("onnxruntime.quantization")
    exported = onnx.load(path)
    # The quantiser transposes matrices and then trips over the shapes recorded for them.
    exported.graph.ClearField("value_info")
    with _quiet():
        quantization.quantize_dynamic(
            exported,
            target,
            weight_type=quantization.QuantType.QInt8,
            use_external_data_format=len(parts_of(path)) > 1,
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # of what fused attention returns
        )


def shapes_to_try(config: PreTrainedConfig) -> list[tuple[int, int]]:
    """Return the batch sizes and lengths at which exported models of this config are tried."""
    return [(batch, fitting_length(length, config)) for batch, length in BATCHES_AND_LENGTHS]


class _Tensors(nn.Module):
    """The model as a function of tensors to tensors, without caches and output classes."""

    def __init__(self, model: PreTrainedModel, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.model(**dict(zip(self.names, inputs, strict=True)))
        return tuple(value for value in outputs.values() if isinstance(value, Tensor))


def _attention(
    model: PreTrainedModel, inputs: dict[str, Tensor], fused: bool
) -> AbstractContextManager[None]:
    """Return the context that writes attention in few operators, if the model's attention allows it."""
    if not can_fuse(model, inputs):
        return nullcontext()
    return fused_attention(model) if fused else standard_attention(model)


def _write(model: PreTrainedModel, path: Path, inputs: dict[str, Tensor], large: bool) -> None:
    program = torch.onnx.export(
        _Tensors(model, list(inputs)).eval(),
        tuple(inputs.values()),
        dynamo=True,
        input_names=list(inputs),
        output_names=list(outputs_of(model, inputs)),
        dynamic_shapes=(tuple({0: "batch", 1: "length"} for _ in inputs),),
        verbose=False,
    )
    assert program is not None  # only the older exporter returns nothing
    keep_norms_apart(program.model.graph)
    program.save(path, external_data=large)


def _check(model: PreTrainedModel, path: Path, shapes: list[tuple[int, int]], types: bool) -> float:
    session, largest = open_session(path), 0.0
    for seed, (batch, length) in enumerate(shapes):
        inputs = random_inputs(model, batch, length, padded=True, token_types=types, seed=seed)
        expected, found = outputs_of(model, inputs), run_session(session, inputs)
        difference = largest_difference(expected, found)
        if not agree(expected, found):
            raise TombolaError(
                f"the ONNX model differs from PyTorch by {difference:.2g} at batch {batch} and length {length}, "
                "so it was not written: try another version of torch and onnxruntime."
            )
        largest = max(largest, difference)
    return largest


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporters' warnings in this context: they are about packages and names, not about the model."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(level)


def require_packages() -> None:
    """Raise if a package that the export needs is missing."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise TombolaError(f"export to ONNX needs {', '.join(missing)}: pip install 'tombola[onnx]'.")
