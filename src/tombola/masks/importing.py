"""Import masks made by other programs: one tensor per matrix, with exact counts."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tombola.errors import DataError
from tombola.masks.groups import Group
from tombola.masks.layout import HEAD, POOLER, Layout, parameters_of
from tombola.masks.mask import Mask
from tombola.masks.units import Units

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MARKED = re.compile(r"^(?P<tensor>.+?)[._]mask(?:_scores|_real)?$")


def mask_from_tensors(
    model: "PreTrainedModel",
    tensors: Mapping[str, Tensor],
    *,
    threshold: float | None = None,
    keep_head: bool = True,
) -> Mask:
    """Build a weight mask from tensors of bits or scores.

    Args:
        model: The model that the mask belongs to, with its task head if the mask covers it.
        tensors: Tensors by weight name, such as `bert.encoder.layer.0.attention.self.query.weight_mask`.
        threshold: Keep scores above it. Without it the tensors must hold bits.
        keep_head: Whether to include the masks of the task head.
    """
    masked = _by_parameter(model, tensors, keep_head)
    if not keep_head:
        masked = {name: value for name, value in masked.items() if not name.startswith(HEAD)}
    units = _covered(model, masked)
    kept = {group.name: _bits(group, masked, threshold) for group in units.groups}
    if threshold is not None and all(_is_bits(value) for value in masked.values()):
        raise DataError("the tensors contain bits, not scores: leave out the threshold.")
    return Mask.from_bools(units, kept)


def _by_parameter(
    model: "PreTrainedModel", tensors: Mapping[str, Tensor], keep_head: bool
) -> dict[str, Tensor]:
    """Return the tensors by the parameter that each masks; in a whole checkpoint, only the mask tensors.

    A head that is not wanted may be one that the model does not have.
    """
    marked = {match["tensor"]: value for name, value in tensors.items() if (match := _MARKED.match(name))}
    parameters = parameters_of(model)
    masked: dict[str, Tensor] = {}
    unknown = []
    for name, value in (marked or dict(tensors)).items():
        parameter = _parameter(name, parameters)
        if parameter is None:
            unknown += [name] if keep_head or not _of_head(name) else []
        elif parameter in masked:
            raise DataError(f"two tensors mask {parameter}.")
        else:
            masked[parameter] = value
    if unknown:
        heads = ", or leave the head out" if any(map(_of_head, unknown)) else ""
        raise DataError(
            f"{len(unknown)} of the {len(unknown) + len(masked)} masked tensors are not in this model, the first is "
            f"{unknown[0]!r}: use the model that the mask was made for, with the head of its task{heads}."
        )
    return masked


def _of_head(name: str) -> bool:
    """Return whether a tensor that is not in the model seems to be of a task head: those of layers have a number."""
    return not re.search(r"\d", name)


def _parameter(name: str, parameters: Mapping[str, object]) -> str | None:
    """Return our name of a parameter that another program saved under `name`."""
    name = name.removeprefix("module.")
    name = name if name.endswith((".weight", ".bias")) else f"{name}.weight"
    below = name.partition(".")[2]
    return next((candidate for candidate in (name, below, f"{HEAD}{name}") if candidate in parameters), None)


def _covered(model: "PreTrainedModel", masked: Mapping[str, Tensor]) -> Units:
    """Return the units that the given tensors cover exactly."""
    layout = Layout.of(model)
    present = [matrix for matrix in layout.matrices if matrix.tensor in masked]
    layers = sorted({matrix.layer for matrix in present if matrix.layer is not None})
    units = Units.of(
        model,
        "weight",
        classifier=any(name.startswith(HEAD) for name in masked),
        biases=any(name.endswith(".bias") for name in masked),
        layers=layers if len(layers) < len(layout.layers()) else None,
    )
    if not any(matrix.kind == POOLER for matrix in present):
        units = units.without(POOLER)
    tensors = dict.fromkeys(part.tensor for group in units.groups for part in group.parts)
    if missing := [name for name in tensors if name not in masked]:
        raise DataError(
            f"{len(missing)} of the model's {len(tensors)} prunable tensors have no mask, e.g. {missing[0]}: "
            "use the model that the mask was made for."
        )
    if extra := [name for name in masked if name not in tensors]:
        raise DataError(
            f"{extra[0]} is masked, but it is not a matrix that can be pruned: remove it from the file."
        )
    return units


def _bits(group: Group, masked: Mapping[str, Tensor], threshold: float | None) -> Tensor:
    (part,) = group.parts
    value = masked[part.tensor]
    try:
        region = part.region(value, group.count)
    except (RuntimeError, IndexError):
        region = value
    if tuple(region.shape) != group.shape:
        raise DataError(
            f"the mask of {part.tensor} has shape {tuple(value.shape)}, not {group.shape}: use the model that the mask "
            "was made for."
        )
    if _is_bits(value):
        return (region != 0).clone()
    if torch.isnan(value).any():
        raise DataError(f"the scores of {part.tensor} contain NaN.")
    if threshold is None:
        low, high = value.min().item(), value.max().item()
        raise DataError(
            f"{part.tensor} has scores from {low:.3g} to {high:.3g}, not bits: set the threshold above which units "
            "are kept (0.01 for SRNets' hard initialisation)."
        )
    return (region > threshold).clone()


def _is_bits(value: Tensor) -> bool:
    return value.dtype == torch.bool or bool(((value == 0) | (value == 1)).all())
