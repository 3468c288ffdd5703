"""The implementation of attention that a model uses, of those that transformers knows."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import PreTrainedModel


@contextmanager
def attending_by(model: PreTrainedModel, implementation: str) -> Iterator[None]:
    """Let a model use another implementation of attention in this context.

    Args:
        model: The model. Layers that were shrunk may have configs of their own.
        implementation: Its name, such as `eager` or `sdpa`.

    Raises:
        ValueError: If the model does not support it.
    """
    before = model.config._attn_implementation
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    copies = [config for config in configs if config is not model.config]
    settings = [config._attn_implementation for config in copies]
    model.set_attn_implementation(implementation)
    for config in copies:
        config._attn_implementation = model.config._attn_implementation
    try:
        yield
    finally:
        model.set_attn_implementation(before)
        for config, setting in zip(copies, settings, strict=True):
            config._attn_implementation = setting
