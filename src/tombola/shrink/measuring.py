"""Measure the size and speed of models: parameters, FLOPs, bytes, and time in turns with another model."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from tombola.evaluation.intervals import fewest_for_median
from tombola.evaluation.predict import evaluating
from tombola.foundations.hardware.machine import device_name
from tombola.shrink.inputs import padding_token, random_inputs
from tombola.shrink.sizes import Sizes, Speedup
from tombola.shrink.texts import Batch, RandomTokens, TextBatch, Texts
from tombola.shrink.timing import ROUNDS, SECONDS, Rounds, Stopwatch, time_in_turns


def count_flops(model: PreTrainedModel, batch: int = 1, length: int = 128) -> int:
    """Return the floating-point operations of a forward pass: two for each multiply-add of a matrix product.

    Attention scores and contexts are included; element-wise operations (norms, activations) are not.

    Args:
        model: The model.
        batch: The number of texts.
        length: The number of tokens per text.
    """
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    formulas = {fused: _attention_flops}  # torch knows the fused attentions of other devices
    counting = FlopCounterMode(display=False, custom_mapping=formulas)
    with evaluating(model, padding_token(model.config)), torch.no_grad(), counting as counter:
        model(**random_inputs(model, batch, length))
    return int(counter.get_total_flops())


class Measurement(NamedTuple):
    """Models measured in one session: the sizes of all, and the speed-ups of the others over the first."""

    sizes: list[Sizes]
    speedups: list[dict[int, Speedup]]


def measure(
    *models: PreTrainedModel,
    batch_sizes: Sequence[int] = (1, 32),
    texts: Texts | None = None,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    reference_corrects: bool = False,
) -> Measurement:
    """Measure the sizes of models, and time them in turns on the same batches.

    Each round gives a ratio of adjacent passes. A single model gets fewer rounds, since it is not compared.

    Args:
        models: The models; speed-ups are over the first.
        batch_sizes: The numbers of texts in a forward pass.
        texts: The texts to time on; by default random tokens, 128 per text.
        rounds: The number of undisturbed rounds for each batch size.
        seconds: The time limit for each batch size; it applies again if the machine is busy.
        reference_corrects: Whether the time of correcting the texts also counts for the first of several models.
    """
    texts = texts or RandomTokens.fitting(models[0].config)
    if len(models) == 1:
        rounds, seconds = min(rounds, fewest_for_median()), seconds / 4
    with ExitStack() as settings:
        for model in models:
            settings.enter_context(evaluating(model, texts.pad_id(model.config)))
        timed, threads = time_models(
            lambda: [forward_pass(model) for model in models],
            lambda size: texts.batches(models[0], size, rounds),
            batch_sizes,
            rounds=rounds,
            seconds=seconds,
            watch=Stopwatch(accelerated=models[0].device.type != "cpu"),
            reference_corrects=reference_corrects or len(models) == 1,
        )
    speedups = [
        {size: rounds.speedup(index) for size, rounds in timed.items()} for index in range(1, len(models))
    ]
    sizes = [_sizes(model, index, timed, threads, texts) for index, model in enumerate(models)]
    return Measurement(sizes, speedups)


def measure_exported(
    dense: PreTrainedModel,
    small: PreTrainedModel,
    dense_file: Path,
    small_file: Path,
    batch_sizes: Sequence[int],
    texts: Texts,
) -> Measurement:
    """Time an ONNX file in turns with a dense model, in PyTorch and as float32 ONNX.

    The time of correcting the texts counts for the exported model only: the dense model has no defense.

    Args:
        dense: The dense model.
        small: The exported model.
        dense_file: The float32 ONNX file of the dense model.
        small_file: The ONNX file of the exported model.
        batch_sizes: The numbers of texts in a forward pass.
        texts: The texts to time on.

    Returns:
        The sizes of both models, and the speed-ups of the exported model over the dense one in PyTorch and in ONNX.
    """
    from tombola.shrink.runtime import open_session, session_pass, try_session

    files = (dense_file, small_file)
    for file in files:
        shapes = [(size, texts.length) for size in batch_sizes]
        try_session(file, shapes, file.name, "export it again on this machine", outcome="")
    with evaluating(dense, texts.pad_id(dense.config)):
        timed, threads = time_models(
            lambda: [forward_pass(dense), *(session_pass(open_session(file)) for file in files)],
            lambda size: texts.batches(dense, size, ROUNDS),
            batch_sizes,
            references=2,
            reference_corrects=False,
        )
    sizes = [_sizes(dense, 0, timed, threads, texts), _sizes(small, 2, timed, threads, texts)]
    over_torch = {size: rounds.speedup(2) for size, rounds in timed.items()}
    return Measurement(
        sizes, [over_torch, {size: rounds.speedup(2, over=1) for size, rounds in timed.items()}]
    )


def _sizes(model: PreTrainedModel, index: int, timed: dict[int, Rounds], threads: int, texts: Texts) -> Sizes:
    return Sizes(
        parameters=model.num_parameters(),
        flops=count_flops(model, 1, texts.length),
        bytes=sum(tensor.numel() * tensor.element_size() for tensor in _stored(model)),
        length=texts.length,
        latency={size: rounds.latency(index) for size, rounds in timed.items()},
        texts=texts.about,
        threads=threads,
        device=device_name(str(model.device)),
    )


class Session(NamedTuple):
    """Models timed in turns: the rounds at each batch size, and the number of threads."""

    rounds: dict[int, Rounds]
    threads: int


@torch.inference_mode()
def time_models(
    open_models: Callable[[], Sequence[Callable[[Batch], object]]],
    batches: Callable[[int], Sequence[Batch]],
    batch_sizes: Sequence[int],
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    watch: Stopwatch | None = None,
    references: int = 1,
    reference_corrects: bool = True,
) -> Session:
    """Time models in turns at each batch size; with one thread if the machine is too busy for several.

    If one thread of a model has to wait for a processor, the others spin until it returns. On a busy machine this
    takes longer than the work itself, whatever the size of the model, so that ratios are close to one. If a defense
    corrects the texts first, its time is included.

    Args:
        open_models: Returns a function per model that runs it on a batch, with the current number of torch threads.
        batches: Returns the batches of a size.
        batch_sizes: The numbers of texts in a forward pass.
        rounds: The number of undisturbed rounds for each batch size.
        seconds: The time limit for each batch size; it applies again to the measurement with one thread.
        watch: The stopwatch.
        references: How many of the models, from the first, are what the others are compared with.
        reference_corrects: Whether the correction of the texts is timed for these too; if not, it only counts for the
            others, as a defense that the references do not have.
    """
    watch, threads = watch or Stopwatch(), torch.get_num_threads()
    inputs = {size: batches(size) for size in batch_sizes}

    def timed() -> Iterator[tuple[int, Rounds]]:
        opened = open_models()
        plain = 0 if reference_corrects else references
        models = [*opened[:plain], *map(_after_correction, opened[plain:])]
        watch_of_size = watch.for_one_thread() if torch.get_num_threads() == 1 else watch
        for size in batch_sizes:
            yield (
                size,
                time_in_turns(models, inputs[size], rounds=rounds, seconds=seconds, watch=watch_of_size),
            )

    by_size: dict[int, Rounds] = {}
    for size, done in timed():
        by_size[size] = done
        if done.share is not None and len(done.laps[0]) > 1 and threads > 1 and not watch.accelerated:
            break
    else:
        return Session(by_size, threads)
    torch.set_num_threads(1)
    try:
        return Session({size: replace(done, fallback=True) for size, done in timed()}, 1)
    finally:
        torch.set_num_threads(threads)


def correction_seconds(batches: Sequence[Batch]) -> float:
    """Return the median seconds in which a defense corrects the texts of a batch; 0 without a defense."""
    watch = Stopwatch().for_one_thread()
    laps = [watch.lap(batch.correct).seconds for batch in batches if isinstance(batch, TextBatch)]
    return median(laps) if laps else 0.0


def _after_correction(model: Callable[[Batch], object]) -> Callable[[Batch], object]:
    """Return a function that corrects the texts of a batch, if there is a defense, and then runs the model."""

    def run(batch: Batch) -> None:
        if isinstance(batch, TextBatch):
            batch.correct()
        model(batch)

    return run


def forward_pass(model: PreTrainedModel) -> Callable[[Batch], object]:
    """Return a function that runs the model on a batch and waits for the device."""

    def run(batch: Batch) -> None:
        model(**batch)
        if model.device.type != "cpu":
            torch.accelerator.synchronize()

    return run


def _attention_flops(query: torch.Size, key: torch.Size, *_: Any, **__: Any) -> int:
    """Return the operations of attention scores and contexts: two products of every query and key, over all heads."""
    return 4 * query.numel() * key[-2]


def _stored(model: PreTrainedModel) -> list[torch.Tensor]:
    """Return the tensors that are saved with the model; tied ones once."""
    return [value for name, value in model.state_dict().items() if name not in model.all_tied_weights_keys]
