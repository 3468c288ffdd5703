"""Replacements for modules that lose all their units, and a hook that MPNet needs besides smaller matrices."""

from typing import Any

from torch import Tensor, nn


class BiasAlone(nn.Module):
    """A projection without inputs: returns its bias for every token, or zeros if the bias is gone too.

    The empty weight stays in the state dict, so that transformers without Tombola fails to load the folder instead of
    filling it with random weights.
    """

    bias: Tensor | None

    def __init__(self, projection: nn.Module, outputs: int) -> None:
        super().__init__()
        for name, buffer in projection.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        for name, parameter in projection.named_parameters(recurse=False):
            self.register_parameter(name, parameter)
        self.bias = getattr(self, "bias", None)
        self.outputs = outputs

    def forward(self, features: Tensor) -> Tensor:
        """Return the bias, or zeros, for every token."""
        shape = (*features.shape[:-1], self.outputs)
        if self.bias is None or self.bias.numel() == 0:
            return features.new_zeros(shape)
        return self.bias.expand(shape).clone()


class WithoutHeads(nn.Module):
    """An attention without heads: returns only the output projection's bias, if the projection is inside.

    Like the attention that it replaces, it may add the residual and normalise the sum.
    """

    def __init__(self, attention: nn.Module, outlet: str | None, norm: str | None = None) -> None:
        super().__init__()
        for name, child in attention.named_children():
            self.add_module(name, child)
        self.outlet = outlet
        self.norm = norm
        self.layer_idx = getattr(attention, "layer_idx", None)

    def forward(
        self,
        hidden_states: Tensor,
        *_: Any,
        past_key_values: Any = None,
        layer_past: Any = None,
        **__: Any,
    ) -> tuple[Tensor, None]:
        """Compute no context, but update the cache, which reads the number of past tokens from the first layer.

        GPT-NeoX calls the cache `layer_past`.
        """
        cache = layer_past if past_key_values is None else past_key_values
        if cache is not None:
            passed = hidden_states[:, None, :, :1]
            cache.update(passed, passed, self.layer_idx)
        context = hidden_states.new_zeros(*hidden_states.shape[:-1], 0)
        output = context if self.outlet is None else self.get_submodule(self.outlet)(context)
        return (output if self.norm is None else self.get_submodule(self.norm)(hidden_states + output)), None


class KeptHeadsOf:
    """A forward pre-hook that selects the kept heads of an argument with one bias per head (MPNet's positions)."""

    def __init__(self, argument: int, heads: list[int]) -> None:
        self.argument = argument
        self.heads = heads

    def __call__(self, module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with the bias of the kept heads only."""
        bias = arguments[self.argument]
        return (*arguments[: self.argument], bias[:, self.heads], *arguments[self.argument + 1 :])
