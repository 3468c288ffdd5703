"""Setting every dropout probability of a model for the length of a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

_PROBABILITIES = ("attention_dropout",)
"""Attributes in which attention layers keep a probability for a functional dropout."""


@contextmanager
def dropout_of(model: nn.Module, probability: float | None) -> Iterator[None]:
    """Inside, all dropout has this probability (None: the model's own); outside, nothing has changed.

    Layers that left a dropout out because its configured probability was 0 get one.
    """
    restore: list[tuple[nn.Module, str, object]] = []

    def put(owner: nn.Module, name: str, value: object) -> None:
        restore.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    if probability is not None:
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Identity) and "drop" in name:
                    put(module, name, nn.Dropout(probability))
            if isinstance(module, nn.Dropout):
                put(module, "p", probability)
            for name in _PROBABILITIES:
                if isinstance(vars(module).get(name), float):
                    put(module, name, probability)
    try:
        yield
    finally:
        for owner, name, value in reversed(restore):
            setattr(owner, name, value)
