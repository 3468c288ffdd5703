"""Bidirectional attention in an exported graph: a few operators of ONNX, or one of onnxruntime.

Otherwise the exporter writes twenty: a mask that is made anew in every layer, a test for NaN, reshapes. Between
quantised matrix products they take a quarter of the time, so the 8-bit file has the one operator of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from tombola.models.attention import attending_by
from tombola.shrink.inputs import agree, outputs_of

NAME = "onnxruntime"
"""The name of this attention among those of transformers."""

OPERATOR = "com.microsoft::MultiHeadAttention"

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, float], Tensor]
"""Attends with queries, keys and values, the mask of the tokens, and the factor of the scores."""

HARMLESS = {"dropout", "is_causal", "output_attentions", "output_hidden_states", "return_dict", "use_cache"}
"""Arguments of an attention function that do not change the outputs of an encoder in eval mode."""


class CannotFuse(Exception):
    """The attention of a model is not what the operators here compute."""


def can_fuse(model: PreTrainedModel, inputs: dict[str, Tensor]) -> bool:
    """Return whether all attention of a model is bidirectional and goes through transformers' interface.

    Args:
        model: A model in eval mode.
        inputs: Inputs for a forward pass, which tries it.
    """
    calls: list[Tensor] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        calls.append(query)
        return _standard(query, key, value, mask, scale)

    expected = outputs_of(model, inputs)
    try:
        with _implementation(model, attend):
            found = outputs_of(model, inputs)
    except (CannotFuse, ValueError):  # transformers refuses models that do not use its interface
        return False
    return bool(calls) and agree(expected, found)


@contextmanager
def standard_attention(model: PreTrainedModel) -> Iterator[None]:
    """Compute attention by matrix products and a softmax in this context, with one mask for all layers."""
    with _implementation(model, _standard):
        yield


@contextmanager
def fused_attention(model: PreTrainedModel) -> Iterator[None]:
    """Compute attention by the operator in this context; the model can then be exported, but not run."""
    with _implementation(model, _fused):
        yield


@contextmanager
def _implementation(model: PreTrainedModel, attend: Attend) -> Iterator[None]:
    AttentionInterface.register(NAME, _checked(attend))
    AttentionMaskInterface.register(NAME, _mask)
    with attending_by(model, NAME):
        yield


def _mask(*, attention_mask: Tensor | None = None, **_: Any) -> Tensor | None:
    """Return the mask of the tokens as it is: the operator takes no other."""
    return attention_mask


def _checked(attend: Attend) -> Callable[..., tuple[Tensor, None]]:
    """Return an attention function that raises if it is causal, has grouped heads, or another mask than the tokens'."""

    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        **others: Any,
    ) -> tuple[Tensor, None]:
        unknown = [name for name, value in others.items() if value is not None and name not in HARMLESS]
        causal = getattr(module, "is_causal", False) or others.get("is_causal")
        masked = attention_mask is None or attention_mask.dim() == 2
        if unknown or causal or not masked or key.shape != query.shape or value.shape != query.shape:
            raise CannotFuse
        scale = float(query.shape[-1] ** -0.5 if scaling is None else scaling)
        return attend(query, key, value, attention_mask, scale), None

    return attention


def _standard(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Attend by operators of ONNX; the exporter merges the masks of the layers, which are the same."""
    scores = query @ key.transpose(2, 3) * scale
    if mask is not None:
        least = torch.finfo(scores.dtype).min
        scores = scores + (1 - mask[:, None, None, :].to(scores.dtype)) * least
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).contiguous()


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Call the operator on queries, keys and values of shape (batch, heads, length, size)."""
    batch, heads, length, size = query.shape

    def flat(part: Tensor) -> Tensor:
        return part.transpose(1, 2).reshape(batch, length, heads * size)

    attended = torch.onnx.ops.symbolic(
        OPERATOR,
        (*map(flat, (query, key, value)), None, None if mask is None else mask.int()),
        {"num_heads": heads, "scale": scale},
        dtype=query.dtype,
        shape=(batch, length, heads * size),
        version=1,
    )
    return attended.reshape(batch, length, heads, size)
