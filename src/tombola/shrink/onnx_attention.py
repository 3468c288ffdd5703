"""Bidirectional attention in an exported graph: a few operators of ONNX, or one of onnxruntime.

Otherwise the exporter writes twenty: a mask that is made anew in every layer, a test for NaN, reshapes. Between
quantised matrix products they take a quarter of the time, so the 8-bit file has the one operator of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

from tombola.shrink.inputs import agree, outputs_of

NAME = "onnxruntime"
"""The name of this attention among those of transformers."""

OPERATOR = "com.microsoft::MultiHeadAttention"

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
    calls: list[nn.Module] = []

    def attention(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        calls.append(module)
        return _standard(module, *args, **kwargs)

    expected = outputs_of(model, inputs)
    try:
        with _implementation(model, attention):
            found = outputs_of(model, inputs)
    except (CannotFuse, ValueError):  # transformers refuses models that do not use its interface
        return False
    return bool(calls) and agree(expected, found)


@contextmanager
def standard_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let a model attend by matrix products and a softmax in this context, with one mask for all layers."""
    with _implementation(model, _standard):
        yield


@contextmanager
def fused_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let a model attend by the operator in this context, in which it can only be exported."""
    with _implementation(model, _fused):
        yield


@contextmanager
def _implementation(model: PreTrainedModel, attention: Any) -> Iterator[None]:
    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, _mask)
    before = model.config._attn_implementation
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    copies = [
        config for config in configs if config is not model.config
    ]  # shrunk layers of Phi-3 have their own
    settings = [config._attn_implementation for config in copies]
    model.set_attn_implementation(NAME)
    for config in copies:
        config._attn_implementation = model.config._attn_implementation
    try:
        yield
    finally:
        model.set_attn_implementation(before)
        for config, setting in zip(copies, settings, strict=True):
            config._attn_implementation = setting


def _mask(*, attention_mask: Tensor | None = None, **_: Any) -> Tensor | None:
    """Return the mask of the tokens as it is: the operator takes no other."""
    return attention_mask


def _standard(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Attend by operators of ONNX; the exporter merges the masks of the layers, which are the same."""
    _check(module, query, key, value, attention_mask, others)
    scores = query @ key.transpose(2, 3) * _scale(query, scaling)
    if attention_mask is not None:
        least = torch.finfo(scores.dtype).min
        scores = scores + (1 - attention_mask[:, None, None, :].to(scores.dtype)) * least
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).contiguous(), None


def _fused(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """Call the operator on queries, keys and values of shape (batch, heads, length, size)."""
    _check(module, query, key, value, attention_mask, others)
    batch, heads, length, size = query.shape

    def flat(part: Tensor) -> Tensor:
        return part.transpose(1, 2).reshape(batch, length, heads * size)

    attended = torch.onnx.ops.symbolic(
        OPERATOR,
        (*map(flat, (query, key, value)), None, None if attention_mask is None else attention_mask.int()),
        {"num_heads": heads, "scale": _scale(query, scaling)},
        dtype=query.dtype,
        shape=(batch, length, heads * size),
        version=1,
    )
    return attended.reshape(batch, length, heads, size), None


def _check(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    others: dict[str, Any],
) -> None:
    """Raise if the attention is causal, has grouped heads, or another mask than that of the tokens."""
    unknown = [name for name, given in others.items() if given is not None and name not in HARMLESS]
    causal = getattr(module, "is_causal", False) or others.get("is_causal")
    masked = attention_mask is None or attention_mask.dim() == 2
    if unknown or causal or not masked or key.shape != query.shape or value.shape != query.shape:
        raise CannotFuse


def _scale(query: Tensor, scaling: float | None) -> float:
    """Return the factor of the scores: the given one, or else that of the heads' size."""
    return float(query.shape[-1] ** -0.5 if scaling is None else scaling)
