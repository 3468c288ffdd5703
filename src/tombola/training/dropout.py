"""Set the dropout probabilities of a model, or only of its head, during a run."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.nn.modules.dropout import _DropoutNd
from transformers import PreTrainedModel

from tombola.errors import TombolaError

_PROBABILITIES = ("attention_dropout",)
"""Attributes in which attention layers store the probability of a functional dropout."""


@contextmanager
def dropout_of(
    model: PreTrainedModel, probability: float | None, head: float | None = None
) -> Iterator[None]:
    """Set all dropout probabilities in this context, and restore them afterwards.

    Layers that omitted a dropout because its configured probability was 0 get one.

    Args:
        model: The model, or several over one encoder.
        probability: The probability; None keeps the model's own.
        head: The probability in the task head; None treats the head like the rest.

    Raises:
        TombolaError: If `head` is given and the head has no dropout.
    """
    restore: list[tuple[nn.Module, str, object]] = []

    def put(owner: nn.Module, name: str, value: object) -> None:
        restore.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def set_all(modules: list[nn.Module], value: float) -> None:
        for module in modules:
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Identity) and "drop" in name:
                    put(module, name, nn.Dropout(value))
            if isinstance(module, nn.Dropout):
                put(module, "p", value)
            for name in _PROBABILITIES:
                if isinstance(vars(module).get(name), float | int):  # a config may write 0 for 0.0
                    put(module, name, value)

    try:
        if probability is not None:
            set_all(list(model.modules()), probability)
        if head is not None:
            before = len(restore)
            set_all(_head_modules(model), head)
            if len(restore) == before:
                raise TombolaError(
                    f"head_dropout: the head of {type(model).__name__} has no dropout: leave it out, or set dropout"
                )
        yield
    finally:
        for owner, name, value in reversed(restore):
            setattr(owner, name, value)


def has_dropout(model: nn.Module) -> bool:
    """Return whether any layer has a dropout with a probability above 0."""
    return any(
        isinstance(value, float | int) and value > 0
        for module in model.modules()
        for name, value in vars(module).items()
        if "drop" in name or (name == "p" and isinstance(module, _DropoutNd))
    )


def _head_modules(model: PreTrainedModel) -> list[nn.Module]:
    """Return all modules outside the encoder."""
    encoder = set(model.base_model.modules())
    return [module for module in model.modules() if module not in encoder]
