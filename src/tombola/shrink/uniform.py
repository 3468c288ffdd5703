"""Turn a structured mask into an ordinary small model: fewer, identical layers that a plain config describes."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from tombola.errors import ModelError, TombolaError
from tombola.families import ConfigKeys, Family, family_of
from tombola.foundations.quiet import quiet
from tombola.masks import Layout, Mask
from tombola.shrink.cutting import Cut, cut
from tombola.shrink.shrinking import MULTIPLE, cuts_of, require_structure


@dataclass(frozen=True)
class UniformShape:
    """A model whose layers are all alike.

    Args:
        layers: The layers that are left, by their indices in the larger model.
        heads: Heads per layer (KV groups, if heads share key and value).
        neurons: The width of each FFN.
    """

    layers: tuple[int, ...]
    heads: int
    neurons: int


def shrink_uniformly(model: PreTrainedModel, mask: Mask, multiple: int = MULTIPLE) -> PreTrainedModel:
    """Return a new, ordinary model without the removed units, whose folder plain transformers loads.

    A layer without any kept units is dropped. The outputs then differ from those of the masked model, in which the
    layer's biases and, in a post-norm model, its norms remain. So train the uniform model again.

    Args:
        model: The larger model, which is unchanged.
        mask: A mask with the same numbers of heads and neurons in every remaining layer.
        multiple: Round the number of neurons up to a multiple of this by keeping removed ones with zero weights.

    Raises:
        TombolaError: If no plain config can describe the result.
    """
    shape, cuts = _shape_and_cuts(model, mask, multiple)
    config = uniform_config(model.config, family_of(model), shape)
    family, small = family_of(model), deepcopy(model)
    mask.apply(small)
    layers = family.layers_of(small)
    small.base_model.set_submodule(family.layers, nn.ModuleList(layers[index] for index in shape.layers))
    cut(small, [cuts[index] for index in shape.layers])
    weights = small.state_dict()
    del small, layers
    with quiet(), torch.random.fork_rng(devices=[]):
        ordinary = type(model)._from_config(config, dtype=model.dtype)
    ordinary.load_state_dict(weights)
    if model.can_generate():
        ordinary.generation_config = deepcopy(model.generation_config)
    return ordinary.to(model.device).train(model.training)


def head_options(config: PretrainedConfig, family: Family) -> list[int]:
    """Return the allowed numbers of heads per layer: all, or fewer if the family's config can express them."""
    every = family.kv_heads_in(config)
    if not config_keys(family).free_heads:
        return [every]
    return [count for count in range(1, every) if _with_heads(config, family, count)] + [every]


def config_keys(family: Family) -> ConfigKeys:
    """Return the config keys of the family's sizes; raise an error if the family does not describe them."""
    if family.config is None:
        raise ModelError(
            f"the description of the family {family.name!r} does not name the config keys for the numbers of layers "
            "and neurons: add `config` to it, or use draw.layout: free"
        )
    return family.config


def uniform_config(config: PretrainedConfig, family: Family, shape: UniformShape) -> PretrainedConfig:
    """Return the plain config of a model of this shape."""
    keys = config_keys(family)
    if getattr(config, "quantization_config", None) is not None:
        raise TombolaError(
            "a model that was already shrunk with a free layout has no standard config: use draw.layout: free"
        )
    sizes: dict[str, Any] = {keys.layers: len(shape.layers), keys.neurons: shape.neurons}
    for name in keys.per_layer:
        if (entries := getattr(config, name, None)) is not None:
            sizes[name] = [entries[index] for index in shape.layers]
    if shape.heads != family.kv_heads_in(config):
        sizes |= _head_sizes(config, family, shape.heads)
    if len(shape.layers) < getattr(config, keys.layers):
        for name in keys.layer_number_settings:
            if getattr(config, name, False):
                raise TombolaError(
                    f"with {name}, a layer's computation depends on its index, so layers cannot be removed: use "
                    "draw.layout: free"
                )
    return _changed(config, sizes)


def _shape_and_cuts(model: PreTrainedModel, mask: Mask, multiple: int) -> tuple[UniformShape, list[Cut]]:
    require_structure(mask)
    mask.check(model)
    family, layout = family_of(model), Layout.of(model)
    cuts = cuts_of(mask, layout, multiple)
    remaining = tuple(index for index, cut in enumerate(cuts) if len(cut.heads) or len(cut.neurons))
    if not remaining:
        raise TombolaError("the mask removes all layers: remove fewer units")
    heads, neurons = (
        {len(getattr(cuts[index], name)) for index in remaining} for name in ("heads", "neurons")
    )
    for unit, counts in (("heads", heads), ("neurons", neurons)):
        if len(counts) > 1:
            raise TombolaError(
                f"the mask leaves {' or '.join(map(str, sorted(counts)))} {unit} per layer, but a standard config has "
                "one number for all: use draw.layout: uniform"
            )
    shape = UniformShape(remaining, heads.pop(), neurons.pop())
    if not shape.heads or not shape.neurons:
        gone = "head" if not shape.heads else "neuron"
        raise TombolaError(
            f"the mask leaves layers without any {gone}, which a standard config cannot represent: remove "
            f"fewer {gone}s, or use draw.layout: free"
        )
    if shape.heads not in head_options(model.config, family):
        raise TombolaError(
            f"{shape.heads} of {layout.heads(0)} heads per layer remain, which the config of a "
            f"{model.config.model_type} model cannot represent: remove only whole layers and neurons"
        )
    for layer in set(family.fixed_layers) - set(shape.layers):
        raise TombolaError(
            f"layer {layer} of a {model.config.model_type} model differs from the others, so it must stay: leave it "
            "out of search.layers"
        )
    return shape, cuts


def _with_heads(config: PretrainedConfig, family: Family, count: int) -> bool:
    """Return whether the config class accepts this number of heads."""
    try:
        _changed(config, _head_sizes(config, family, count))
    except StrictDataclassError:
        return False
    return True


def _head_sizes(config: PretrainedConfig, family: Family, count: int) -> dict[str, int]:
    """Return the config entries for `count` KV heads, with the same query heads per KV head and the same width."""
    assert family.head_dim is not None, "the number of heads is free only if the config has their width"
    per_group = family.heads_in(config) // family.kv_heads_in(config)
    sizes = {family.heads: count * per_group, family.head_dim: family.head_dim_in(config)}
    return sizes | ({family.kv_heads: count} if family.kv_heads else {})


def _changed(config: PretrainedConfig, sizes: Mapping[str, Any]) -> PretrainedConfig:
    """Return a validated copy of the config with other sizes."""
    copy = type(config).from_dict({**config.to_dict(), **sizes})
    copy.validate()
    copy._attn_implementation = config._attn_implementation
    return copy
