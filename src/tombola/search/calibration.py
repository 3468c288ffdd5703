"""Calibration: pass training examples through a model layer by layer.

Only one layer's activations are in memory at a time. The other arguments that the model passes to its layers (masks,
rotary embeddings) are recorded once per batch and layer, so that a layer of any family can run on its own, even if
the other layers are not loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tombola.errors import DataError, ModelError
from tombola.families import family_of, family_of_type
from tombola.foundations.lazy import lazy_module
from tombola.foundations.settings import Settings

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
    from transformers import PreTrainedConfig, PreTrainedModel

    from tombola.objectives import Batch
else:
    torch = lazy_module("torch")

HIDDEN = "hidden_states"


class Calibration(Settings):
    """The training examples used for calibration."""

    examples: int = Field(128, gt=0, description="number of training examples")
    batch_size: int = Field(8, gt=0, description="examples per forward pass")


@dataclass(frozen=True)
class _Call:
    """The arguments of a layer besides the hidden states, its first argument."""

    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    named: bool

    def on(self, layer: Callable[..., Any], hidden: Tensor) -> Any:
        """Call a layer on hidden states."""
        if self.named:
            return layer(*self.arguments, **{**self.options, HIDDEN: hidden})
        return layer(hidden, *self.arguments, **self.options)


class _Recorded(Exception):
    """Raised once all layers have been called, to skip the rest of the forward pass."""


class LayerWalk:
    """Batches that advance through the layers of a model.

    Args:
        model: A model of a known family, in eval mode. Only the first layer and the modules before the layers need
            values.
        batches: Encoded examples.
    """

    def __init__(self, model: PreTrainedModel, batches: Iterable[Batch]) -> None:
        check_passes(model.config)
        self.model = model
        self.layers: list[nn.Module] = list(family_of(model).layers_of(model))
        self.batches: list[Batch] = []
        self.hidden: list[Tensor] = []
        """The input of the next layer, by batch."""
        self.real: list[Tensor | None] = []
        """Which tokens are not padding, by batch; None without padding."""
        self.current = 0
        """The index of the current batch."""
        self._calls: list[list[_Call]] = []
        self._besides: tuple[Any, ...] | None = None
        self._known = False
        device = model.get_input_embeddings().weight.device
        with torch.no_grad(), _without_cache(model):
            for batch in batches:
                self._record({name: value.to(device) for name, value in batch.items()})
        if not self.hidden:
            raise DataError("there are no examples to calibrate on")

    def _record(self, batch: Batch) -> None:
        """Run the model up to its layers, and record the arguments of each layer."""
        calls: list[_Call] = []
        first_input = SimpleNamespace(first=None)

        def stand_in(index: int, forward: Callable[..., Any]) -> Callable[..., Any]:
            def record(*arguments: Any, **options: Any) -> Any:
                named = HIDDEN in options
                hidden = options.pop(HIDDEN) if named else arguments[0]
                if index == 0:
                    first_input.first = hidden
                elif hidden is not first_input.first:
                    raise ModelError(
                        f"this {self.model.config.model_type} model changes the output of layer {index - 1} before "
                        f"layer {index} reads it, so its layers cannot be calibrated one by one: use a search "
                        "without calibration, such as magnitude"
                    )
                call = _Call(arguments if named else arguments[1:], options, named)
                calls.append(call)
                if index == 0 and (not self._known or any(map(torch.is_tensor, self._besides or ()))):
                    output = call.on(forward, hidden)
                    self._besides = output[1:] if isinstance(output, tuple) else None
                    self._known = True
                if index + 1 == len(self.layers):
                    raise _Recorded
                return self._as_given(hidden)

            return record

        stand_ins = [stand_in(index, layer.forward) for index, layer in enumerate(self.layers)]
        with _forwards(self.layers, stand_ins), suppress(_Recorded):
            self.model.base_model(**_inputs_of(self.model.base_model, batch))
        mask = batch.get("attention_mask")
        self.batches.append(batch)
        self.hidden.append(first_input.first)
        self.real.append(None if mask is None or bool(mask.all()) else mask.bool())
        self._calls.append(calls)

    def _as_given(self, hidden: Tensor) -> Any:
        """Return hidden states in the form that a layer of this model returns."""
        return hidden if self._besides is None else (hidden, *self._besides)

    def run(self, index: int) -> Iterator[Tensor]:
        """Yield a layer's output for each batch, without advancing."""
        for number, (hidden, calls) in enumerate(zip(self.hidden, self._calls, strict=True)):
            self.current = number
            with torch.no_grad():
                output = calls[index].on(self.layers[index], hidden)
            yield output[0] if isinstance(output, tuple) else output

    def advance(self, index: int) -> None:
        """Run a layer on each batch; its outputs become the inputs of the next."""
        for number, hidden in enumerate(self.run(index)):
            self.hidden[number] = hidden

    def finish(self) -> None:
        """After the last layer, run the rest of the model, head included, on each batch."""
        with torch.no_grad(), _without_cache(self.model):
            for number, (batch, hidden) in enumerate(zip(self.batches, self.hidden, strict=True)):
                self.current = number
                states = self._as_given(hidden)
                with _forwards(self.layers, [lambda *_, states=states, **__: states] * len(self.layers)):
                    self.model(**_inputs_of(self.model, batch))

    def rows(self, values: Tensor) -> Tensor:
        """Return the current batch's activations at real tokens, one per row; all rows if they are not per token.

        Args:
            values: Activations, with features in the last dimension.
        """
        real = self.real[self.current]
        if real is not None and values.shape[:-1] == real.shape:
            return values[real.to(values.device)]
        return values.reshape(-1, values.shape[-1])


def _inputs_of(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """Return the entries of a batch that the model accepts, without labels, since no loss is needed."""
    parameters = inspect.signature(model.forward).parameters
    return {name: value for name, value in batch.items() if name in parameters and name != "labels"}


def check_passes(config: PreTrainedConfig) -> None:
    """Reject models that reuse the same layers: a matrix then has several inputs."""
    family = family_of_type(config.model_type)
    keys = family.config if family is not None else None
    counted = config.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    if keys is not None and keys.layers != counted and hasattr(config, counted):
        raise ModelError(
            f"{config.model_type} models apply the same layers several times, so they cannot be calibrated one by "
            "one: use a search without calibration, such as magnitude"
        )


@contextmanager
def _forwards(layers: Sequence[nn.Module], forwards: Sequence[Callable[..., Any]]) -> Iterator[None]:
    """Replace the layers' forward methods in this context."""
    try:
        for layer, forward in zip(layers, forwards, strict=True):
            layer.forward = forward
        yield
    finally:
        for layer in layers:
            del layer.forward


@contextmanager
def _without_cache(model: PreTrainedModel) -> Iterator[None]:
    """Disable the key-value cache of decoders in this context."""
    before = getattr(model.config, "use_cache", None)
    model.config.use_cache = False
    try:
        yield
    finally:
        model.config.use_cache = before
