"""Cut heads and neurons out of a model's matrices, in place, as the description of its family locates them."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from tombola.errors import ModelError
from tombola.families import Attention, family_of
from tombola.masks.layout import ATTENTION, FFN, Layout, Matrix, Role
from tombola.shrink.modules import BiasAlone, KeptHeadsOf, WithoutHeads
from tombola.shrink.shape import ModelShape


@dataclass(frozen=True)
class Cut:
    """The heads and neurons that a layer keeps, by index, and whether it keeps the biases of its output projections."""

    heads: Tensor
    neurons: Tensor
    attention_bias: bool = True
    ffn_bias: bool = True


def cuts_to(model: PreTrainedModel, shape: ModelShape) -> list[Cut]:
    """Return the cuts that give a whole model without weights a shape; which neurons they keep does not matter."""
    layout = Layout.of(model)
    layers = layout.layers()
    if len(shape.layers) != len(layers):
        raise ModelError(
            f"the shrunk model has {len(shape.layers)} layers, but its config has {len(layers)}: copy or create the "
            "folder again."
        )
    for index, layer in enumerate(shape.layers):
        heads, neurons = layout.heads(index), layers[index]["up"].outputs
        if any(head >= heads for head in layer.heads or ()) or (layer.neurons or 0) > neurons:
            raise ModelError(
                f"layer {index} of the shrunk model keeps heads or neurons that its config, with {heads} heads and "
                f"{neurons} neurons, does not have: copy or create the folder again."
            )
    return [
        Cut(
            torch.tensor(layer.heads or (), dtype=torch.long),
            torch.arange(layer.neurons or 0),
            layer.heads is not None,
            layer.neurons is not None,
        )
        for layer in shape.layers
    ]


@torch.no_grad()
def cut(model: PreTrainedModel, cuts: Sequence[Cut]) -> None:
    """Remove everything that the cuts do not keep from the model's layers, in place."""
    family, layout = family_of(model), Layout.of(model)
    for index, (layer, kept) in enumerate(zip(family.layers_of(model), cuts, strict=True)):
        roles = layout.layers()[index]
        heads, neurons = layout.heads(index), roles["up"].outputs
        if len(kept.neurons) < neurons:
            _cut_units(model.base_model, _matrices_of(roles, FFN), kept.neurons, neurons, kept.ffn_bias)
        if len(kept.heads) < heads:
            _cut_units(
                model.base_model, _matrices_of(roles, ATTENTION), kept.heads, heads, kept.attention_bias
            )
            query_heads = roles["query"].outputs // layout.head_dim // heads * len(kept.heads)
            _update_attention(layer, family.attention, kept.heads, query_heads, layout.head_dim)


def _matrices_of(roles: Mapping[Role, Matrix], wanted: Sequence[Role]) -> list[Matrix]:
    return [roles[role] for role in wanted if role in roles]


def _cut_units(base: nn.Module, matrices: list[Matrix], kept: Tensor, count: int, keep_bias: bool) -> None:
    """Keep some of `count` units: rows of the input matrices, columns of the output matrix."""
    *inward, outward = matrices
    rows: dict[str, list[Tensor]] = {}
    for matrix in sorted(inward, key=lambda matrix: matrix.start):
        within = _indices(kept, matrix.outputs, count)
        rows.setdefault(_path(matrix), []).append(within + matrix.start)
    for path, indices in rows.items():
        projection = base.get_submodule(path)
        _select(projection, "weight", inward[0].out_dim, torch.cat(indices))
        _select(projection, "bias", 0, torch.cat(indices))
        _declare_sizes(projection)
    module = base.get_submodule(_path(outward))
    _select(module, "weight", 1 - outward.out_dim, _indices(kept, outward.inputs, count))
    _declare_sizes(module)
    if not keep_bias:
        _select(module, "bias", 0, torch.arange(0))
    if len(kept) == 0:
        base.set_submodule(_path(outward), BiasAlone(module, outward.outputs))


def _update_attention(
    layer: nn.Module, names: Attention, kept: Tensor, query_heads: int, head_dim: int
) -> None:
    """Update the attention's head count, or replace an attention without heads."""
    path = names.query.module.rpartition(".")[0]
    attention = layer.get_submodule(path)
    if query_heads == 0:
        inside = names.output.module.startswith(f"{path}.")
        outlet = names.output.module.removeprefix(f"{path}.") if inside else None
        layer.set_submodule(path, WithoutHeads(attention, outlet, names.norm))
        return
    for name in names.head_counts:
        setattr(attention, name, query_heads)
    for name in names.kv_counts:
        setattr(attention, name, len(kept))
    if names.config_counts:  # the layers share the model's config
        attention.config = copy(attention.config)
        for name in names.config_counts:
            setattr(attention.config, name, query_heads)
    for name in names.widths:
        setattr(attention, name, query_heads * head_dim)
    if names.head_bias is not None:
        attention.register_forward_pre_hook(KeptHeadsOf(names.head_bias, kept.tolist()))


def _path(matrix: Matrix) -> str:
    return matrix.tensor.removesuffix(".weight")


def _indices(kept: Tensor, features: int, count: int) -> Tensor:
    """Return the features of the kept units; each of the `count` units has equally many."""
    width = features // count
    return (kept[:, None] * width + torch.arange(width)).flatten()


def _select(module: nn.Module, name: str, dim: int, indices: Tensor) -> None:
    """Keep some indices of a parameter. An empty one becomes a buffer, which is stored but never trained."""
    old = getattr(module, name)
    if old is None:
        return
    new = old.index_select(dim, indices.to(old.device))
    delattr(module, name)
    if new.numel():
        module.register_parameter(name, nn.Parameter(new, requires_grad=old.requires_grad))
    else:
        module.register_buffer(name, new)


def _declare_sizes(module: nn.Module) -> None:
    match module:
        case nn.Linear():
            module.out_features, module.in_features = module.weight.shape
        case Conv1D():
            module.nx, module.nf = module.weight.shape
