"""Checks that units, tensors and models belong together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tombola.errors import MaskMismatch, TombolaError
from tombola.families import family_of
from tombola.masks.base import Base, geometry
from tombola.masks.layout import POOLER, parameters_of
from tombola.masks.units import Units

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def check_model(units: Units, model: "PreTrainedModel", base: Base | None = None) -> None:
    """Reject a model with a different geometry or, if its starting `base` is given, with different weights.

    A model may lack the pooler that the units cover: a classifier's mask also fits the language model.
    """
    theirs = geometry(model)
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters_of(model).items()}
    poolers = {
        name for matrix in units.layout.matrices if matrix.kind == POOLER for name in matrix.stored_shapes
    }
    if units.family != family_of(model).name or units.base.geometry != theirs.geometry:
        raise MaskMismatch(
            f"the mask does not fit this model: it belongs to {units.base}, but the model is {base or theirs}."
        )
    for name, shape in units.layout.shapes.items():
        if shapes.get(name) != shape and not (name in poolers and name not in shapes):
            raise MaskMismatch(
                f"the mask does not fit this model: it belongs to {units.base}, but the model is {base or theirs}, "
                f"whose {name} has shape {shapes.get(name)}, not {shape}."
            )
    if base is not None and base.fingerprint != units.base.fingerprint:
        raise MaskMismatch(
            f"the mask was drawn from {units.base}, but this model started from {base}: load the pre-trained model "
            "that the mask belongs to, or apply it to other weights of the same geometry with search: {method: "
            "given, base: any}."
        )


def check_same(one: Units, two: Units) -> None:
    """Reject masks over different units."""
    if not one.same_as(two):
        raise MaskMismatch(
            f"these masks do not cover the same units: {one}; {two}. Call expand() on masks of different "
            'granularity; exclude poolers with without("pooler").'
        )


def check_groups(what: str, units: Units, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Reject a mapping that does not have exactly one entry of the right shape per group."""
    expected = {group.name: group.shape for group in units.groups}
    for name in dict.fromkeys([*expected, *shapes]):
        if expected.get(name) != shapes.get(name):
            raise TombolaError(
                f"these {what} do not fit the {units.granularity} units: {name!r} has shape {shapes.get(name)}, not "
                f"{expected.get(name)}."
            )
