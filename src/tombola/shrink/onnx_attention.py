"""Attention as one operator of onnxruntime, in place of the twenty of a plain export.

The 8-bit file is made from a graph with this operator: between quantised matrix products, the reshapes and masks of a
plain export take a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

NAME = "onnxruntime"
"""The name of this attention among those of transformers."""

OPERATOR = "com.microsoft::MultiHeadAttention"

HARMLESS = {"dropout", "is_causal", "output_attentions", "output_hidden_states", "return_dict", "use_cache"}
"""Arguments of an attention function that do not change the outputs of an encoder in eval mode."""


class CannotFuse(Exception):
    """The attention of a model is not what the operator computes."""


def can_fuse(model: PreTrainedModel, inputs: dict[str, Tensor]) -> bool:
    """Return whether all attention of a model is bidirectional and goes through transformers' interface.

    Args:
        model: A model in eval mode.
        inputs: Inputs for a forward pass, which tries it.
    """
    calls: list[nn.Module] = []

    def attention(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        calls.append(module)
        return _attention(module, *args, **kwargs)

    try:
        with _implementation(model, attention), torch.no_grad():
            model(**inputs)
    except (CannotFuse, ValueError):  # transformers refuses models that do not use its interface
        return False
    return bool(calls)


@contextmanager
def fused_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let a model attend by the operator in this context, in which it can only be exported."""
    with _implementation(model, _attention):
        yield


@contextmanager
def _implementation(model: PreTrainedModel, attention: Any) -> Iterator[None]:
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, _mask)
    before = model.config._attn_implementation
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _mask(*, attention_mask: Tensor | None = None, **_: Any) -> Tensor | None:
    """Return the mask of the tokens as it is: the operator takes no other."""
    return attention_mask


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Call the operator on queries, keys and values of shape (batch, heads, length, size)."""
    batch, heads, length, size = query.shape
    unknown = [name for name, given in others.items() if given is not None and name not in HARMLESS]
    causal = getattr(module, "is_causal", False) or others.get("is_causal")
    masked = attention_mask is None or attention_mask.dim() == 2
    if unknown or causal or not masked or key.shape != query.shape or value.shape != query.shape:
        raise CannotFuse

    def flat(part: Tensor) -> Tensor:
        return part.transpose(1, 2).reshape(batch, length, heads * size)

    attended = torch.onnx.ops.symbolic(
        OPERATOR,
        (*map(flat, (query, key, value)), None, None if attention_mask is None else attention_mask.int()),
        {"num_heads": heads, "scale": float(size**-0.5 if scaling is None else scaling)},
        dtype=query.dtype,
        shape=(batch, length, heads * size),
        version=1,
    )
    return attended.reshape(batch, length, heads, size), None
