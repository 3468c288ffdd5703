"""The implementation of attention during training."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel

from tombola.foundations.hardware import Precision
from tombola.models.attention import attending_by
from tombola.training.dropout import has_dropout


@contextmanager
def fastest_attention(model: PreTrainedModel, precision: Precision) -> Iterator[None]:
    """Train with plain attention where PyTorch's `scaled_dot_product_attention` is slower: in bf16 on a CPU.

    With dropout, PyTorch computes the same products and softmax there, with more conversions and a test for rows that
    are masked as a whole. On a processor with AMX, a training step takes 12 to 25 % less without them.

    Args:
        model: The model to train, with the dropout of the training.
        precision: The arithmetic of the passes.
    """
    encoder = model.base_model  # which several tasks may share
    fused = encoder.config._attn_implementation == "sdpa"
    if fused and precision == "bf16" and encoder.device.type == "cpu" and has_dropout(model):
        with attending_by(encoder, "eager"):
            yield
    else:
        yield
