"""A model as two parts: the encoder, and the head on top of it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def copy_base(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Give `into` the encoder of `source` (embeddings, layers, norms, pooler), tensor by tensor."""
    into.base_model.load_state_dict(source.base_model.state_dict())


def copy_head(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Give `into` all of `source` that is not its encoder, nor tied to it."""
    into.load_state_dict(head_of(source), strict=False)


def head_of(model: "PreTrainedModel") -> "dict[str, Tensor]":
    """The parameters of a model that are not its encoder's, nor tied to it, by name."""
    base = {id(parameter) for parameter in model.base_model.parameters()}
    return {name: tensor for name, tensor in model.named_parameters() if id(tensor) not in base}
