"""Masks of a small model and of the larger one that it was cut out of: one as the other."""

from collections.abc import Sequence

import torch

from tombola.masks.mask import Mask
from tombola.masks.units import Units


def layers_left(mask: Mask) -> list[int]:
    """The layers of which a mask keeps anything."""
    kept = {group.layer for group in mask.units.groups if bool(mask[group.name].any())}
    covered = {group.layer for group in mask.units.groups}
    return [layer for layer in mask.units.layout.layers() if layer in kept or layer not in covered]


def lift(inner: Mask, outer: Mask, layers: Sequence[int]) -> Mask:
    """A small model's mask as one of the larger model.

    Args:
        inner: A mask of the small model.
        outer: The mask that the small model was cut out by.
        layers: The numbers that the small model's layers have in the larger one.
    """
    own = {(layers[group.layer or 0], group.kind): inner[group.name] for group in inner.units.groups}
    kept = {}
    for group in outer.units.groups:
        kept[group.name] = outer[group.name].clone()
        if (group.layer, group.kind) in own:
            kept[group.name][outer[group.name]] = own[group.layer or 0, group.kind]
    return Mask.from_bools(outer.units, kept)


def lower(mask: Mask, outer: Mask, units: Units, layers: Sequence[int]) -> Mask:
    """A mask of the larger model as one of the small model: what `lift` was made from.

    Args:
        mask: A mask of the larger model, inside of `outer`.
        outer: The mask that the small model was cut out by.
        units: The small model's units.
        layers: The numbers that the small model's layers have in the larger one.
    """
    places = {(group.layer, group.kind): group.name for group in mask.units.groups}
    kept = {}
    for group in units.groups:
        name = places[layers[group.layer or 0], group.kind]
        kept[group.name] = mask[name][outer[name]].reshape(group.shape)
    return Mask.from_bools(units, {name: value.to(torch.bool) for name, value in kept.items()})
