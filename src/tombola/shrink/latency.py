"""A table of the latency of layers by their numbers of heads and neurons.

A few geometries of a model are timed in turns with the dense model, on the same batches. The time of a layer is that
of its heads plus that of its neurons, both interpolated between measured counts; the time outside the layers
(embeddings, task head) is constant. All times are fractions of the dense model's time, because a busy machine distorts
fractions less than seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from copy import deepcopy

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import nn
from transformers import PreTrainedModel

from tombola.evaluation.predict import evaluating
from tombola.families import family_of
from tombola.foundations.hardware.threads import using_threads
from tombola.masks import Layout
from tombola.masks.fitting import Cost, Kept
from tombola.shrink.cutting import Cut, cut
from tombola.shrink.measuring import forward_pass, time_models
from tombola.shrink.texts import Texts
from tombola.shrink.timing import Stopwatch

ROUNDS = 9
SECONDS = 10.0
TOGETHER = 4
"""The number of geometries that take turns with the dense model in one session."""


class SizeLatency(BaseModel):
    """The times at one batch size: seconds of the dense model, and fractions of them.

    Args:
        dense: Seconds of a forward pass of the dense model.
        constant: The fraction spent outside the layers.
        heads: The fraction of one layer with all neurons, by its number of heads.
        neurons: The fraction of one layer with all heads, by its number of neurons.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    dense: float
    constant: float
    heads: dict[int, float]
    neurons: dict[int, float]

    def layer(self, heads: int, neurons: int) -> float:
        """Return the fraction of the dense model's time that a layer takes."""
        all_heads = self.heads[max(self.heads)]
        return _interpolated(self.heads, heads) + _interpolated(self.neurons, neurons) - all_heads

    @property
    def cost(self) -> Cost:
        """The cost of a model as a fraction of the dense model's time."""
        return Cost(self.constant, self.layer)


class LatencyTable(BaseModel):
    """The times of a model's layers by batch size, with the conditions of the measurement."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sizes: dict[int, SizeLatency]
    texts: str
    threads: int


def measure_latency(
    model: PreTrainedModel,
    texts: Texts,
    batch_sizes: Sequence[int],
    threads: int,
    multiple: int = 8,
    fewer_heads: bool = True,
    fewer_neurons: bool = True,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> LatencyTable:
    """Time a few geometries of a model in turns with the dense model.

    Args:
        model: The dense model. Its weights do not matter.
        texts: The texts to time on.
        batch_sizes: The batch sizes to time.
        threads: The number of threads.
        multiple: Neuron counts are multiples of this.
        fewer_heads: Whether to time layers with fewer heads too.
        fewer_neurons: Whether to time layers with fewer neurons too.
        progress: Called with the number of finished geometries and the total.
    """
    layout = Layout.of(model)
    count, full = len(layout.layers()), Kept(layout.heads(0), layout.layers()[0]["up"].outputs)
    some_heads = _spread(full.heads, 1, 2) if fewer_heads else []
    some_neurons = _spread(full.neurons, multiple, 4) if fewer_neurons else []
    half: Kept | int = count // 2 or Kept(0, 0)  # a number of layers; some models cannot run without any
    shapes: list[Kept | int] = [
        half,
        *(Kept(heads, full.neurons) for heads in some_heads),
        *(Kept(full.heads, neurons) for neurons in some_neurons),
    ]
    shares: dict[int, dict[Kept | int, float]] = {size: {} for size in batch_sizes}
    dense: dict[int, list[float]] = {size: [] for size in batch_sizes}
    for start in range(0, len(shapes), TOGETHER):
        part = shapes[start : start + TOGETHER]
        progress(start, len(shapes))
        for size, (seconds, ratios) in time_shares(
            model, [_with_shape(model, shape) for shape in part], texts, batch_sizes, threads
        ).items():
            dense[size].append(seconds)
            shares[size] |= dict(zip(part, ratios, strict=True))
    sizes = {}
    for size, share in shares.items():
        layer = max(1.0 - share[half], 1e-6) / (count - count // 2)
        constant = max(0.0, 1.0 - count * layer)
        layer = (1.0 - constant) / count
        by_heads = {heads: (share[Kept(heads, full.neurons)] - constant) / count for heads in some_heads}
        by_neurons = {n: (share[Kept(full.heads, n)] - constant) / count for n in some_neurons}
        sizes[size] = SizeLatency(
            dense=float(np.median(dense[size])),
            constant=constant,
            heads=_monotone({**by_heads, full.heads: layer}),
            neurons=_monotone({**by_neurons, full.neurons: layer}),
        )
    return LatencyTable(sizes=sizes, texts=texts.about, threads=threads)


def time_shares(
    dense: PreTrainedModel,
    others: Sequence[PreTrainedModel],
    texts: Texts,
    batch_sizes: Sequence[int],
    threads: int,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> dict[int, tuple[float, list[float]]]:
    """Return the dense model's seconds and the others' times as fractions of it, measured in turns, by batch size.

    If a defense corrects the texts first, its time counts only for the other models.
    """
    models = [dense, *others]
    with ExitStack() as settings, using_threads(threads):
        for model in models:
            settings.enter_context(evaluating(model, texts.pad_id(model.config)))
        timed, _ = time_models(
            lambda: [forward_pass(model) for model in models],
            lambda size: texts.batches(dense, size, rounds),
            batch_sizes,
            rounds=rounds,
            seconds=seconds,
            watch=Stopwatch(accelerated=dense.device.type != "cpu"),
            reference_corrects=False,
        )
    return {
        size: (rounds.latency(0), [1 / rounds.speedup(index).ratio for index in range(1, len(models))])
        for size, rounds in timed.items()
    }


def of_geometry(model: PreTrainedModel, layers: Sequence[Kept | None]) -> PreTrainedModel:
    """Return a copy of the model with the given heads and neurons in each layer; None removes a layer.

    Args:
        model: The dense model, which is unchanged.
        layers: The geometry of each layer; there may be fewer than the model has.
    """
    family, small = family_of(model), deepcopy(model)
    small.config.use_cache = False  # the cache counts by the layers' original indices
    kept = [layer for layer in layers if layer is not None]
    layers_of_model = list(family.layers_of(small))
    places = [index for index, layer in enumerate(layers) if layer is not None]
    kept_layers = nn.ModuleList()
    for index in places:
        kept_layers.append(layers_of_model[index])
    small.base_model.set_submodule(family.layers, kept_layers)
    if family.config is not None:
        setattr(small.config, family.config.layers, len(kept_layers))
        for name in family.config.per_layer:
            if (entries := getattr(small.config, name, None)) is not None:
                setattr(small.config, name, [entries[index] for index in places])
    cut(small, [Cut(torch.arange(layer.heads), torch.arange(layer.neurons)) for layer in kept])
    return small


def _with_shape(model: PreTrainedModel, shape: Kept | int) -> PreTrainedModel:
    """Return a copy of the model whose layers all have this geometry, or that has this number of layers."""
    layout = Layout.of(model)
    if isinstance(shape, Kept):
        return of_geometry(model, [shape] * len(layout.layers()))
    full = Kept(layout.heads(0), layout.layers()[0]["up"].outputs)
    return of_geometry(model, [full] * shape)


def _spread(count: int, multiple: int, parts: int) -> list[int]:
    """Return 0 and evenly spaced numbers below `count`, rounded to a multiple."""
    counts = {round(count * part / parts / multiple) * multiple for part in range(parts)}
    return sorted(number for number in counts if number < count)


def _monotone(points: dict[int, float]) -> dict[int, float]:
    """Make times non-decreasing in the number of units, which noise may prevent."""
    numbers = sorted(points)
    levels = np.minimum.accumulate([points[number] for number in reversed(numbers)])[::-1]
    return dict(zip(numbers, map(float, np.maximum(levels, 0.0)), strict=True))


def _interpolated(points: dict[int, float], number: int) -> float:
    numbers = sorted(points)
    return float(np.interp(number, numbers, [points[key] for key in numbers]))
