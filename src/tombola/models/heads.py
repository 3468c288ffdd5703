"""Split a model into its encoder and its head."""

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def copy_base(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Copy the encoder of `source` (embeddings, layers, norms, pooler) into `into`."""
    into.base_model.load_state_dict(source.base_model.state_dict())


def copy_head(source: "PreTrainedModel", into: "PreTrainedModel") -> None:
    """Copy everything outside the encoder of `source`, and not tied to it, into `into`."""
    into.load_state_dict(head_of(source), strict=False)


def head_of(model: "PreTrainedModel") -> "dict[str, Tensor]":
    """Return the parameters outside a model's encoder, and not tied to it, by name."""
    base = {id(parameter) for parameter in model.base_model.parameters()}
    return {name: tensor for name, tensor in model.named_parameters() if id(tensor) not in base}


@torch.no_grad()
def renew_head(model: "PreTrainedModel", seed: int) -> None:
    """Reinitialise the head of a model in place, depending only on `seed`. Parameters tied to the encoder stay."""
    base = {id(parameter) for parameter in model.base_model.parameters()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for module in model.modules():
            parameters = list(module.parameters(recurse=False))
            if all(id(parameter) in base for parameter in parameters):
                continue
            for parameter in parameters:  # a projection to the vocabulary is tied, its bias is not
                parameter._is_hf_initialized = id(parameter) in base
            model._init_weights(module)
