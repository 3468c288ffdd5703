"""How large and how fast a model is: parameters, FLOPs, bytes, and latency measured side by side."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel

from tombola.shrink.inputs import random_inputs
from tombola.shrink.sizes import Row, Sizes

WARM_UP = 2


def count_flops(model: PreTrainedModel, batch: int = 1, length: int = 128) -> int:
    """The floating-point operations of one forward pass: two for each multiply-add of every matrix product.

    Scores and contexts of the attention are included, element-wise work (norms, activations) is not.
    """
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    known = {fused: _attention_flops}  # torch knows the fused attentions of other devices
    with FlopCounterMode(display=False, custom_mapping=known) as counter, torch.no_grad():
        model.eval()(**random_inputs(model, batch, length))
    return counter.get_total_flops()


def measure(
    *models: PreTrainedModel, batch_sizes: Sequence[int] = (1, 32), length: int = 128, rounds: int = 7
) -> list[Sizes]:
    """Size up models on texts of one length. They are timed in turns, so that all meet the same machine."""
    latencies = {batch: time_in_turns(models, batch, length, rounds) for batch in batch_sizes}
    return [
        Sizes(
            parameters=model.num_parameters(),
            flops=count_flops(model, 1, length),
            bytes=sum(tensor.numel() * tensor.element_size() for tensor in _stored(model)),
            length=length,
            latency={batch: median(seconds[index]) for batch, seconds in latencies.items()},
        )
        for index, model in enumerate(models)
    ]


@torch.inference_mode()
def time_in_turns(
    models: Sequence[PreTrainedModel],
    batch: int,
    length: int,
    rounds: int,
    clock: Callable[[], float] = perf_counter,
) -> list[list[float]]:
    """The seconds of each model's forward passes, after a warm-up; every round runs each model once."""
    seconds: list[list[float]] = [[] for _ in models]
    inputs = [random_inputs(model.eval(), batch, length) for model in models]
    for turn in range(WARM_UP + rounds):
        for model, given, taken in zip(models, inputs, seconds, strict=True):
            start = clock()
            model(**given)
            if model.device.type != "cpu":
                torch.accelerator.synchronize()
            if turn >= WARM_UP:
                taken.append(clock() - start)
    return seconds


def compare(before: Sizes, after: Sizes) -> list[Row]:
    """What `tombola shrink` prints: each size before and after."""
    return [
        Row(what="parameters", before=before.parameters, after=after.parameters),
        Row(what=f"FLOPs per text of {before.length} tokens", before=before.flops, after=after.flops),
        Row(what="size on disk", before=before.bytes, after=after.bytes, unit="B"),
        *(
            Row(what=f"time of a batch of {batch}", before=before.latency[batch], after=taken, unit="s")
            for batch, taken in after.latency.items()
        ),
    ]


def _attention_flops(query: torch.Size, key: torch.Size, *_: Any, **__: Any) -> int:
    """Scores and contexts: two products of every query with every key, over all heads."""
    return 4 * query.numel() * key[-2]


def _stored(model: PreTrainedModel) -> list[torch.Tensor]:
    """The tensors that saving the model writes: tied ones once."""
    return [value for name, value in model.state_dict().items() if name not in model.all_tied_weights_keys]
