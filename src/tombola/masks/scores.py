"""One number per unit; the lowest go first when a mask is drawn."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tombola.errors import TombolaError
from tombola.masks import storage
from tombola.masks.check import check_groups
from tombola.masks.groups import Group, Part
from tombola.masks.units import Units

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Scores(Mapping[str, Tensor]):
    """A float32 score for every unit, by group; from them masks can be drawn at any sparsity."""

    def __init__(self, units: Units, scores: Mapping[str, Tensor], *, absolute: bool = False) -> None:
        """Take the scores as they are. With `absolute` their absolute values count, and none is copied for that."""
        check_groups("scores", units, {name: tuple(score.shape) for name, score in scores.items()})
        self.units = units
        self.absolute = absolute
        self.stored = {group.name: scores[group.name].detach().float() for group in units.groups}

    @classmethod
    def total(cls, units: Units, values: Mapping[str, Tensor]) -> "Scores":
        """Each unit's sum of a value per weight, given by tensor name: magnitudes, saliencies, …

        Args:
            units: The units to score.
            values: A tensor of values for every tensor that the units cover.
        """
        return cls(units, {group.name: _total(group, values, group.parts) for group in units.groups})

    @classmethod
    def magnitude(cls, units: Units, model: "PreTrainedModel") -> "Scores":
        """The absolute value of each weight of the model, or the mean over the weights of each larger unit.

        Single weights are looked at where they are: draw before the model changes.

        Args:
            units: The units to score.
            model: The model whose weights they are.
        """
        weights = units.matrices(model)
        if units.granularity == "weight":
            return cls(units, cls.total(units, weights).stored, absolute=True)
        sums = cls.total(units, {name: weight.detach().abs() for name, weight in weights.items()})
        return cls(units, {group.name: sums[group.name] / group.unit_weights for group in units.groups})

    def __getitem__(self, name: str) -> Tensor:
        return self.stored[name].abs() if self.absolute else self.stored[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def save(self, path: str | PathLike[str], **metadata: str) -> None:
        """Write one safetensors file: a float32 tensor per group, and the units in the header.

        Args:
            path: The file to write.
            **metadata: Text to keep in the header, by key.
        """
        tensors = {name: score.cpu().contiguous().numpy() for name, score in self.items()}
        storage.write(path, "scores", self.units, tensors, metadata)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Scores":
        """Read what `save` wrote; a damaged file is refused.

        Args:
            path: The file.
        """
        units, tensors, _ = storage.read(path, "scores")
        if any(tensor.dtype.name != "float32" for tensor in tensors.values()):
            raise TombolaError(f"{path} holds scores that are not float32: compute them again.")
        return cls(units, {name: torch.from_numpy(tensor) for name, tensor in tensors.items()})


def totals(units: Units, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each unit's sum of a value per weight and bias that goes with it, by group."""
    return {group.name: _total(group, values, (*group.parts, *group.biases)) for group in units.groups}


def _total(group: Group, values: Mapping[str, Tensor], parts: tuple[Part, ...]) -> Tensor:
    regions = [(part, part.region(values[part.tensor], group.count)) for part in parts]
    if group.elementwise:
        return regions[0][1]
    sums = [
        region.sum().reshape(1)
        if part.dim is None
        else _along(region, part.dim).reshape(group.count, part.width).sum(dim=1)
        for part, region in regions
    ]
    return torch.stack(sums).sum(dim=0)


def _along(region: Tensor, dim: int) -> Tensor:
    """The sum over all other dimensions, of which a bias has none."""
    return region if region.dim() == 1 else region.sum(dim=1 - dim)
