"""Convert masks between a small model and the larger model that it was cut from."""

from collections.abc import Sequence

import torch

from tombola.masks.mask import Mask
from tombola.masks.units import Units


def layers_left(mask: Mask) -> list[int]:
    """Return the layers of which a mask keeps anything."""
    kept = {group.layer for group in mask.units.groups if bool(mask[group.name].any())}
    covered = {group.layer for group in mask.units.groups}
    return [layer for layer in mask.units.layout.layers() if layer in kept or layer not in covered]


def lift(inner: Mask, outer: Mask, layers: Sequence[int]) -> Mask:
    """Convert a mask of the small model into one of the larger model.

    Args:
        inner: A mask of the small model.
        outer: The mask by which the small model was cut out.
        layers: The indices of the small model's layers in the larger one.
    """
    kept_inside = {(layers[group.layer or 0], group.kind): inner[group.name] for group in inner.units.groups}
    kept = {}
    for group in outer.units.groups:
        kept[group.name] = outer[group.name].clone()
        if (group.layer, group.kind) in kept_inside:
            kept[group.name][outer[group.name]] = kept_inside[group.layer or 0, group.kind]
    return Mask.from_bools(outer.units, kept)


def lower(mask: Mask, outer: Mask, units: Units, layers: Sequence[int]) -> Mask:
    """Convert a mask of the larger model into one of the small model; the inverse of `lift`.

    Args:
        mask: A mask of the larger model, within `outer`.
        outer: The mask by which the small model was cut out.
        units: The small model's units.
        layers: The indices of the small model's layers in the larger one.
    """
    places = {(group.layer, group.kind): group.name for group in mask.units.groups}
    kept = {}
    for group in units.groups:
        name = places[layers[group.layer or 0], group.kind]
        kept[group.name] = mask[name][outer[name]].reshape(group.shape)
    return Mask.from_bools(units, {name: value.to(torch.bool) for name, value in kept.items()})
