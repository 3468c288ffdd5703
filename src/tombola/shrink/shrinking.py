"""Turn a structured ticket into a smaller model, without the units that its mask removes. (Super Tickets, extended)"""

from copy import deepcopy

import torch
from torch import Tensor
from transformers import PreTrainedModel

from tombola.errors import TombolaError
from tombola.masks import Layout, Mask
from tombola.masks.names import STRUCTURED
from tombola.shrink.cutting import Cut, cut
from tombola.shrink.quantizer import ShrunkConfig
from tombola.shrink.shape import METHOD, LayerShape, ModelShape

MULTIPLE = 8


def shrink(model: PreTrainedModel, mask: Mask, multiple: int = MULTIPLE) -> PreTrainedModel:
    """Return a new model without the heads, neurons, FFNs and layers that the mask removes.

    The given model is unchanged. The outputs equal those of the masked model. After `import tombola`, every
    `AutoModel….from_pretrained` loads the folder that `save_pretrained` writes. A shrunk model may be masked and
    shrunk again if every layer has some heads and neurons left.

    The number of neurons in an FFN is rounded up to a `multiple` by keeping removed neurons with zero weights. They
    change no output and get no gradient; other widths make matrix products about a third slower on CPUs.

    Args:
        model: The model to shrink.
        mask: A mask of heads, neurons, FFNs or layers that fits the model.
        multiple: Round the number of neurons of an FFN up to a multiple of this.
    """
    require_structure(mask)
    mask.check(model)
    before = shape_of(model)
    cuts = cuts_of(mask, Layout.of(model), multiple)
    after = ModelShape(
        layers=tuple(_remaining(layer, kept) for layer, kept in zip(before.layers, cuts, strict=True))
    )
    shrunk = deepcopy(model)
    mask.apply(shrunk)
    if after != before:
        cut(shrunk, cuts)
        shrunk.config.quantization_config = ShrunkConfig(**after.model_dump())
    return shrunk


def require_structure(mask: Mask) -> None:
    """Reject a mask of single weights, rows or columns: removing those does not make a matrix smaller.

    Args:
        mask: The mask.
    """
    others = set(mask.units.kinds) - STRUCTURED
    if others:
        raise TombolaError(
            f"a mask of {' and '.join(sorted(others))} units does not make matrices smaller, so there is nothing to "
            f"shrink: pack this ticket with `tombola shrink --pack`, or draw one of {', '.join(sorted(STRUCTURED))} "
            "units."
        )


def shape_of(model: PreTrainedModel) -> ModelShape:
    """Return the shape of a model's layers: whole, unless the model was shrunk before.

    Args:
        model: The model.
    """
    recorded = getattr(model.config, "quantization_config", None)
    if recorded is not None:
        data = recorded if isinstance(recorded, dict) else recorded.to_dict()
        if data["quant_method"] != METHOD:
            raise TombolaError(
                f"this model is quantised by {data['quant_method']}: shrink it first, then quantise."
            )
        return ModelShape.read(data)
    layout = Layout.of(model)
    return ModelShape(
        layers=tuple(
            LayerShape(heads=tuple(range(layout.heads(index))), neurons=roles["up"].outputs)
            for index, roles in layout.layers().items()
        )
    )


def cuts_of(mask: Mask, layout: Layout, multiple: int) -> list[Cut]:
    """Return the heads and neurons of each layer that a structured mask keeps."""
    kept = {(group.layer, group.kind): mask.bools(group.name) for group in mask.units.groups}
    cuts = []
    for index, roles in layout.layers().items():
        layer_stays = bool(kept.get((index, "layer"), torch.ones(1)).all())
        ffn_stays = layer_stays and bool(kept.get((index, "ffn"), torch.ones(1)).all())
        heads = _indices(kept.get((index, "head")), layout.heads(index), layer_stays)
        neurons = _indices(kept.get((index, "neuron")), roles["up"].outputs, ffn_stays, multiple)
        cuts.append(Cut(heads, neurons, attention_bias=layer_stays, ffn_bias=ffn_stays))
    return cuts


def _indices(kept: Tensor | None, count: int, stays: bool, multiple: int = 1) -> Tensor:
    """Return the kept units, padded with removed ones to a multiple; none if the block is removed."""
    if not stays:
        return torch.arange(0)
    if kept is None:
        return torch.arange(count)
    missing = -int(kept.sum()) % multiple
    filling = (~kept).nonzero().flatten()[:missing]
    return torch.cat([kept.nonzero().flatten(), filling]).sort().values


def _remaining(layer: LayerShape, kept: Cut) -> LayerShape:
    heads = None if layer.heads is None else tuple(layer.heads[head] for head in kept.heads.tolist())
    neurons = None if layer.neurons is None else len(kept.neurons)
    return LayerShape(
        heads=heads if kept.attention_bias else None, neurons=neurons if kept.ffn_bias else None
    )
