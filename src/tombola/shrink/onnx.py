"""Models as ONNX, for any batch and length, checked against PyTorch before anybody else runs them."""

import logging
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from tombola.errors import TombolaError
from tombola.evaluation.predict import evaluating
from tombola.foundations.paths import temporary_beside
from tombola.shrink.agreement import compare_int8
from tombola.shrink.folders import load_model
from tombola.shrink.inputs import largest_difference, longest_input, outputs_of, random_inputs
from tombola.shrink.measuring import forward_pass, time_models
from tombola.shrink.onnx_seal import seal_onnx
from tombola.shrink.runtime import open_session, run_session, session_pass, try_session
from tombola.shrink.sizes import Speedup
from tombola.shrink.texts import RandomTokens, TaskTexts, Texts
from tombola.shrink.timing import ROUNDS

BATCHES_AND_LENGTHS = ((1, 5), (2, 16), (5, 33), (3, 128))
TOLERANCE = 1e-4
ONE_FILE = 1_500_000_000  # bytes; protobuf ends at 2 GB, so larger models keep their weights beside the graph


class Int8(BaseModel):
    """The dynamically quantised model, compared with the original on the texts of the export.

    Args:
        path: Its file.
        bytes: Its size.
        max_difference: The largest difference of an output.
        agreement: How often it decides as the original does; None where outputs are no decisions.
        score: Its score in the task's headline metric, where the task is known and has labels.
        speedup: How many times faster it is than PyTorch, by batch size.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    bytes: int
    max_difference: float
    agreement: float | None
    score: float | None = None
    speedup: dict[int, Speedup]


class Export(BaseModel):
    """An exported model, and how it compares with PyTorch.

    Args:
        path: Its file.
        bytes: Its size, weights included.
        shapes: Batch and length of the inputs on which its outputs were compared.
        max_difference: The largest difference of an output on these.
        texts: What the models were timed on, and the quantised one compared on.
        speedup: How many times faster onnxruntime is than PyTorch in the same process, by batch size.
        metric: The task's headline metric, if an int8 version was compared on texts that have labels.
        score: The score of the original in it.
        int8: The quantised model.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path
    bytes: int
    shapes: list[tuple[int, int]]
    max_difference: float
    texts: str
    speedup: dict[int, Speedup]
    metric: str | None = None
    score: float | None = None
    int8: Int8 | None = None


def export_onnx(
    source: PreTrainedModel | str | Path,
    path: str | Path,
    int8: bool = False,
    *,
    texts: Texts | None = None,
    token_types: bool = True,
    batch_sizes: Sequence[int] = (1, 32),
    rounds: int = ROUNDS,
) -> Export:
    """Write a model as float32 ONNX for any batch and length, and time it in turns with PyTorch.

    onnxruntime must agree with PyTorch on several shapes, padded texts included, or nothing is written.

    Args:
        source: A model, or a folder with one; it may be shrunk.
        path: The file to write.
        int8: Whether to write a version with 8-bit weights too (`….int8.onnx`), which is only approximately the same.
        texts: What to time on, and to compare the 8-bit version on; random tokens, 128 a text, if not given.
        token_types: Whether the file asks for token types; pass False if the model's tokenizer gives none.
        batch_sizes: Texts in a forward pass, for timing.
        rounds: Undisturbed rounds of timing wanted for each batch size.
    """
    _require_packages()
    model = source if isinstance(source, PreTrainedModel) else load_model(Path(source))
    if model.dtype != torch.float32 or model.device.type != "cpu":
        model = deepcopy(model).float().cpu()
    texts = texts or RandomTokens.fitting(model.config)
    path = Path(path)
    with _drafts(path) as folder, _reading(model, texts):
        draft = folder / path.name
        also = [(batch, texts.length) for batch in batch_sizes]
        written = write_onnx(model, draft, also, token_types=token_types)
        eight_bits = draft.with_suffix(".int8.onnx") if int8 else None
        if eight_bits:
            quantise_onnx(draft, eight_bits, [*written.shapes, *also])
        files = [draft, eight_bits] if eight_bits else [draft]
        speedups = _time(model, files, texts, batch_sizes, rounds)
        for file in files:
            seal_onnx(file)
        made = Export(
            path=path,
            bytes=sum(file.stat().st_size for file in folder.glob(f"{draft.name}*")),
            shapes=written.shapes,
            max_difference=written.max_difference,
            texts=texts.about,
            speedup=speedups[0],
        )
        if eight_bits:
            compared = compare_int8(model, eight_bits, texts, token_types)
            quantised = Int8(
                path=path.parent / eight_bits.name,
                bytes=sum(file.stat().st_size for file in folder.glob(f"{eight_bits.name}*")),
                max_difference=compared.max_difference,
                agreement=compared.agreement,
                score=compared.score,
                speedup=speedups[1],
            )
            scores = {"metric": compared.metric, "score": compared.original_score}
            made = made.model_copy(update={"int8": quantised, **scores})
        for file in list(folder.iterdir()):
            file.replace(path.parent / file.name)
    return made


@contextmanager
def _drafts(path: Path) -> Iterator[Path]:
    """A folder beside a file, on the same disk, for what is not finished yet."""
    folder = temporary_beside(path)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Written(NamedTuple):
    """What `write_onnx` found: where outputs were compared with PyTorch, and how far off they were."""

    shapes: list[tuple[int, int]]
    max_difference: float


def write_onnx(
    model: PreTrainedModel, path: Path, also: Sequence[tuple[int, int]] = (), *, token_types: bool = True
) -> Written:
    """Write a model in eval mode as float32 ONNX, and try it.

    Args:
        model: A float32 model on the CPU, with a padding token.
        path: The file to write.
        also: Further shapes (batch, length) at which the file will be run.
        token_types: Whether the file asks for token types.

    Raises:
        TombolaError: If onnxruntime does not run the file here, or does not agree with PyTorch.
    """
    _require_packages()
    large = sum(tensor.numel() * tensor.element_size() for tensor in model.parameters()) > ONE_FILE
    with _quiet():
        _write(model, path, large, token_types)
    shapes = shapes_to_try(model.config)
    try_session(path, [*shapes, *also], "float32", "try another version of onnxruntime")
    return Written(shapes, _check(model, path, shapes, token_types))


def quantise_onnx(path: Path, target: Path, shapes: Sequence[tuple[int, int]]) -> None:
    """Write a float32 ONNX model with 8-bit weights, and try it.

    Args:
        path: What `write_onnx` wrote.
        target: The file to write.
        shapes: Batch and length of each trial.

    Raises:
        TombolaError: If onnxruntime does not run the file here.
    """
    _require_packages()
    quantization, exported = import_module("onnxruntime.quantization"), import_module("onnx").load(path)
    # The quantiser transposes matrices and then trips over the shapes recorded for them.
    exported.graph.ClearField("value_info")
    large = len(list(path.parent.glob(f"{path.name}*"))) > 1
    with _quiet():
        quantization.quantize_dynamic(
            exported, target, weight_type=quantization.QuantType.QInt8, use_external_data_format=large
        )
    try_session(target, shapes, "int8", "export it without --int8")


def shapes_to_try(config: PreTrainedConfig) -> list[tuple[int, int]]:
    """Batch and length of the inputs on which every exported model of this config is tried."""
    longest = longest_input(config)
    return [(batch, min(length, longest)) for batch, length in BATCHES_AND_LENGTHS]


def _reading(model: PreTrainedModel, texts: Texts) -> AbstractContextManager[None]:
    """The model in eval mode, with the padding token of the task's texts if it has none of its own."""
    pad = model.config.pad_token_id
    return evaluating(model, texts.pad_id(model.config) if isinstance(texts, TaskTexts) else pad)


def _time(
    model: PreTrainedModel, files: list[Path], texts: Texts, batch_sizes: Sequence[int], rounds: int
) -> list[dict[int, Speedup]]:
    """For each file, how many times faster onnxruntime is than PyTorch, by batch size."""
    timed, _ = time_models(
        lambda: [forward_pass(model), *(session_pass(open_session(file)) for file in files)],
        lambda size: texts.batches(model, size, rounds),
        batch_sizes,
        rounds=rounds,
    )
    return [{size: found.speedup(at) for size, found in timed.items()} for at in range(1, len(files) + 1)]


class _Tensors(nn.Module):
    """The model as a function of tensors to tensors, without caches and output classes."""

    def __init__(self, model: PreTrainedModel, names: list[str]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        outputs = self.model(**dict(zip(self.names, inputs, strict=True)))
        return tuple(value for value in outputs.values() if isinstance(value, Tensor))


def _write(model: PreTrainedModel, path: Path, large: bool, types: bool) -> None:
    inputs = random_inputs(model, 2, min(9, longest_input(model.config)), padded=True, token_types=types)
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


def _check(model: PreTrainedModel, path: Path, shapes: list[tuple[int, int]], types: bool) -> float:
    session, largest = open_session(path), 0.0
    for seed, (batch, length) in enumerate(shapes):
        inputs = random_inputs(model, batch, length, padded=True, token_types=types, seed=seed)
        expected = outputs_of(model, inputs)
        difference = largest_difference(expected, run_session(session, inputs))
        scale = max(1.0, *(float(value.abs().max()) for value in expected.values()))
        if not difference <= TOLERANCE * scale:
            raise TombolaError(
                f"the ONNX model differs from PyTorch by {difference:.2g} at batch {batch} and length {length}, "
                "so it was not written: try another version of torch and onnxruntime."
            )
        largest = max(largest, difference)
    return largest


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
