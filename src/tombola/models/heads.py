"""A model as two parts: the encoder, and the head on top of it."""

from typing import TYPE_CHECKING

import torch

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


@torch.no_grad()
def renew_head(model: "PreTrainedModel", seed: int) -> None:
    """Draw the head of a model anew, in place and from `seed` alone. What is tied to the encoder stays."""
    base = {id(parameter) for parameter in model.base_model.parameters()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in model.modules():
            own = list(module.parameters(recurse=False))
            if all(id(parameter) in base for parameter in own):
                continue
            for parameter in own:  # a projection to the vocabulary is tied, its bias is not
                parameter._is_hf_initialized = id(parameter) in base
            model._init_weights(module)
