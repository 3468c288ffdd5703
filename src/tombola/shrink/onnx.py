"""Export models to ONNX, for any batch size and length, and compare them with PyTorch."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict
from transformers import PreTrainedModel

from tombola.evaluation.predict import evaluating
from tombola.foundations.checksums import require_place
from tombola.shrink.agreement import compare_int8
from tombola.shrink.folders import load_model
from tombola.shrink.measuring import forward_pass, time_models
from tombola.shrink.onnx_seal import parts_of, seal_onnx
from tombola.shrink.onnx_writing import drafts, quantise_onnx, require_packages, write_onnx
from tombola.shrink.runtime import open_session, session_pass
from tombola.shrink.sizes import Speedup
from tombola.shrink.texts import RandomTokens, TaskTexts, Texts
from tombola.shrink.timing import ROUNDS


class Int8(BaseModel):
    """The dynamically quantised model, compared with the original on the texts of the export.

    Args:
        path: The file.
        bytes: The size of the file.
        max_difference: The largest difference between outputs.
        agreement: The share of equal decisions; None if the outputs are not decisions.
        score: The score in the task's headline metric, if the task is known and has labels.
        speedup: The speed-up over PyTorch, by batch size.
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

    Attributes:
        path: The file.
        bytes: The size of the file, weights included.
        shapes: The batch sizes and lengths at which outputs were compared.
        max_difference: The largest difference between outputs.
        texts: The texts on which the models were timed, and the quantised one was compared.
        speedup: The speed-up of onnxruntime over PyTorch in the same process, by batch size.
        metric: The task's headline metric, if a quantised model was compared on texts with labels.
        score: The original model's score in that metric.
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
        texts: The texts to time on, and to compare the 8-bit version on; by default random tokens, 128 per text.
        token_types: Whether token types are an input of the file; False if the model's tokenizer does not produce them.
        batch_sizes: The numbers of texts in a forward pass, for timing.
        rounds: The number of undisturbed rounds of timing for each batch size.
    """
    require_packages()
    require_place(Path(path))
    model = source if isinstance(source, PreTrainedModel) else load_model(Path(source))
    if model.dtype != torch.float32 or model.device.type != "cpu":
        model = deepcopy(model).float().cpu()
    texts = texts or RandomTokens.fitting(model.config)
    path = Path(path)
    with drafts(path) as folder, _reading(model, texts):
        draft = folder / path.name
        also = [(batch, texts.length) for batch in batch_sizes]
        written = write_onnx(model, draft, also, token_types=token_types)
        eight_bits = draft.with_suffix(".int8.onnx") if int8 else None
        if eight_bits:
            quantise_onnx(model, eight_bits, also, token_types=token_types)
        files = [draft, eight_bits] if eight_bits else [draft]
        speedups = _time(model, files, texts, batch_sizes, rounds)
        for file in files:
            seal_onnx(file)
        result = Export(
            path=path,
            bytes=sum(file.stat().st_size for file in parts_of(draft)),
            shapes=written.shapes,
            max_difference=written.max_difference,
            texts=texts.about,
            speedup=speedups[0],
        )
        if eight_bits:
            compared = compare_int8(model, eight_bits, texts, token_types)
            quantised = Int8(
                path=path.parent / eight_bits.name,
                bytes=sum(file.stat().st_size for file in parts_of(eight_bits)),
                max_difference=compared.max_difference,
                agreement=compared.agreement,
                score=compared.score,
                speedup=speedups[1],
            )
            scores = {"metric": compared.metric, "score": compared.original_score}
            result = result.model_copy(update={"int8": quantised, **scores})
        for file in list(folder.iterdir()):
            file.replace(path.parent / file.name)
    return result


def _reading(model: PreTrainedModel, texts: Texts) -> AbstractContextManager[None]:
    """Put the model into eval mode in this context, with the padding token of the task's texts if it has none."""
    pad = model.config.pad_token_id
    return evaluating(model, texts.pad_id(model.config) if isinstance(texts, TaskTexts) else pad)


def _time(
    model: PreTrainedModel, files: list[Path], texts: Texts, batch_sizes: Sequence[int], rounds: int
) -> list[dict[int, Speedup]]:
    """Return the speed-up of onnxruntime over PyTorch for each file, by batch size."""
    timed, _ = time_models(
        lambda: [forward_pass(model), *(session_pass(open_session(file)) for file in files)],
        lambda size: texts.batches(model, size, rounds),
        batch_sizes,
        rounds=rounds,
    )
    return [{size: rounds.speedup(at) for size, rounds in timed.items()} for at in range(1, len(files) + 1)]
