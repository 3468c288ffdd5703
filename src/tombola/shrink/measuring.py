"""How large and how fast a model is: parameters, FLOPs, bytes, and speed measured in turns with another model."""

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
from tombola.shrink.inputs import random_inputs
from tombola.shrink.sizes import Sizes, Speedup
from tombola.shrink.texts import Batch, RandomTokens, TextBatch, Texts
from tombola.shrink.timing import ROUNDS, SECONDS, Rounds, Stopwatch, time_in_turns


def count_flops(model: PreTrainedModel, batch: int = 1, length: int = 128) -> int:
    """The floating-point operations of one forward pass: two for each multiply-add of every matrix product.

    Scores and contexts of the attention are included, element-wise work (norms, activations) is not.

    Args:
        model: The model.
        batch: Texts in the pass.
        length: Tokens of each text.
    """
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    known = {fused: _attention_flops}  # torch knows the fused attentions of other devices
    counting = FlopCounterMode(display=False, custom_mapping=known)
    with evaluating(model, pad_id=0), torch.no_grad(), counting as counter:
        model(**random_inputs(model, batch, length))
    return int(counter.get_total_flops())


class Measurement(NamedTuple):
    """Models measured in one session: the sizes of each, and of each but the first its speed-up over the first."""

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
    """Size models up, and time them in turns on the same batches: each round gives a ratio of neighbouring passes.

    A model alone has nothing to be compared with, so a few rounds are enough for it.

    Args:
        models: The models; speed-ups are over the first.
        batch_sizes: Texts in a forward pass.
        texts: What to time on; random tokens, 128 a text, if not given.
        rounds: Undisturbed rounds wanted for each batch size.
        seconds: Time for each batch size, and again if the machine is busy; no round begins after it.
        reference_corrects: Whether the first of several models has the defense of the texts too.
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
        {size: found.speedup(index) for size, found in timed.items()} for index in range(1, len(models))
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

    Args:
        dense: The model to compare with.
        small: The model that was exported.
        dense_file: The float32 ONNX file of the first.
        small_file: The ONNX file of the second.
        batch_sizes: Texts in a forward pass.
        texts: What to time on.

    Returns:
        The sizes of the dense model and of the exported one; the speed-ups of the latter over PyTorch and over ONNX.
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
            reference_corrects=False,
        )
    sizes = [_sizes(dense, 0, timed, threads, texts), _sizes(small, 2, timed, threads, texts)]
    over_torch = {size: found.speedup(2) for size, found in timed.items()}
    return Measurement(sizes, [over_torch, {size: found.speedup(2, over=1) for size, found in timed.items()}])


def _sizes(model: PreTrainedModel, index: int, timed: dict[int, Rounds], threads: int, texts: Texts) -> Sizes:
    return Sizes(
        parameters=model.num_parameters(),
        flops=count_flops(model, 1, texts.length),
        bytes=sum(tensor.numel() * tensor.element_size() for tensor in _stored(model)),
        length=texts.length,
        latency={size: found.latency(index) for size, found in timed.items()},
        texts=texts.about,
        threads=threads,
        device=device_name(str(model.device)),
    )


class Session(NamedTuple):
    """Models timed in turns: the rounds at each batch size, and the threads of all of them."""

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
    reference_corrects: bool = True,
) -> Session:
    """Time models in turns at each batch size; with one thread if the machine is too busy for several.

    Where one of a model's threads has to wait for a processor, the others spin until it is back. On a busy machine
    that takes longer than the work itself, however small the model, and ratios come out near one. Where texts are
    corrected first, a model's time includes it.

    Args:
        open_models: Gives what to run on a batch, with the threads that torch has then.
        batches: Gives the batches of a size.
        batch_sizes: Texts in a forward pass.
        rounds: Undisturbed rounds wanted for each batch size.
        seconds: Time for each batch size, and again with one thread.
        watch: What measures a pass.
        reference_corrects: Whether texts are corrected before the first model too, and not only before the others,
            which are then charged for a defense that the first does not have.
    """
    watch, threads = watch or Stopwatch(), torch.get_num_threads()
    inputs = {size: batches(size) for size in batch_sizes}

    def timed() -> Iterator[tuple[int, Rounds]]:
        reference, *others = open_models()
        first = _after_correction(reference) if reference_corrects else reference
        models = [first, *map(_after_correction, others)]
        own = watch.for_one_thread() if torch.get_num_threads() == 1 else watch
        for size in batch_sizes:
            yield size, time_in_turns(models, inputs[size], rounds=rounds, seconds=seconds, watch=own)

    found: dict[int, Rounds] = {}
    for size, done in timed():
        found[size] = done
        if done.share is not None and len(done.laps[0]) > 1 and threads > 1 and not watch.accelerated:
            break
    else:
        return Session(found, threads)
    torch.set_num_threads(1)
    try:
        return Session({size: replace(done, fallback=True) for size, done in timed()}, 1)
    finally:
        torch.set_num_threads(threads)


def correction_seconds(batches: Sequence[Batch]) -> float:
    """The median time that a defense takes for the texts of a batch; none, where there is no defense."""
    watch = Stopwatch().for_one_thread()
    found = [watch.lap(batch.correct).seconds for batch in batches if isinstance(batch, TextBatch)]
    return median(found) if found else 0.0


def _after_correction(model: Callable[[Batch], object]) -> Callable[[Batch], object]:
    """The model with the correction of the batch's texts before it, where they have one."""

    def run(batch: Batch) -> None:
        if isinstance(batch, TextBatch):
            batch.correct()
        model(batch)

    return run


def forward_pass(model: PreTrainedModel) -> Callable[[Batch], object]:
    """A function that runs the model on a batch and returns when the device is done."""

    def run(batch: Batch) -> None:
        model(**batch)
        if model.device.type != "cpu":
            torch.accelerator.synchronize()

    return run


def _attention_flops(query: torch.Size, key: torch.Size, *_: Any, **__: Any) -> int:
    """Scores and contexts: two products of every query with every key, over all heads."""
    return 4 * query.numel() * key[-2]


def _stored(model: PreTrainedModel) -> list[torch.Tensor]:
    """The tensors that saving the model writes: tied ones once."""
    return [value for name, value in model.state_dict().items() if name not in model.all_tied_weights_keys]
