"""One score per unit; a mask removes the lowest first."""

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
    """A float32 score for every unit, by group, from which `draw` makes masks at any sparsity."""

    def __init__(self, units: Units, scores: Mapping[str, Tensor], *, absolute: bool = False) -> None:
        """Keep the scores as given. With `absolute`, their absolute values count, without a copy."""
        check_groups("scores", units, {name: tuple(score.shape) for name, score in scores.items()})
        self.units = units
        self.absolute = absolute
        self.stored = {group.name: scores[group.name].detach().float() for group in units.groups}

    @classmethod
    def total(cls, units: Units, values: Mapping[str, Tensor]) -> "Scores":
        """Score each unit by the sum of a value per weight, such as a magnitude or a saliency.

        Args:
            units: The units to score.
            values: The values for every tensor that the units cover, by tensor name.
        """
        return cls(units, {group.name: _total(group, values, group.parts) for group in units.groups})

    @classmethod
    def magnitude(cls, units: Units, model: "PreTrainedModel") -> "Scores":
        """Score each weight by its absolute value, or each larger unit by the mean over its weights.

        The scores of single weights share the model's memory: draw before the model changes.

        Args:
            units: The units to score.
            model: The model whose weights are scored.
        """
        weights = units.matrices(model)
        if units.granularity == "weight":
            return cls(units, cls.total(units, weights).stored, absolute=True)
        sums = cls.total(units, {name: weight.detach().abs() for name, weight in weights.items()})
        return cls(units, {group.name: sums[group.name] / group.unit_weights for group in units.groups})

    def __repr__(self) -> str:
        return f"Scores({self.units.base.model_type} {self.units.granularity}: {self.units.count:,})"

    def __getitem__(self, name: str) -> Tensor:
        return self.stored[name].abs() if self.absolute else self.stored[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def save(self, path: str | PathLike[str], **metadata: str) -> None:
        """Write one safetensors file: a float32 tensor per group, with the units in the header.

        Args:
            path: The file to write.
            **metadata: Text to keep in the header, by key.
        """
        tensors = {name: score.cpu().contiguous().numpy() for name, score in self.items()}
        storage.write(path, "scores", self.units, tensors, metadata)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Scores":
        """Load scores that `save` wrote; a damaged file is rejected.

        Args:
            path: The file.
        """
        units, tensors, _ = storage.read(path, "scores")
        if any(tensor.dtype.name != "float32" for tensor in tensors.values()):
            raise TombolaError(f"{path} contains scores that are not float32: compute them again.")
        return cls(units, {name: torch.from_numpy(tensor) for name, tensor in tensors.items()})


def totals(units: Units, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the sum over each unit's weights and biases of a value per entry, by group."""
    return {group.name: _total(group, values, (*group.parts, *group.biases)) for group in units.groups}


def _total(group: Group, values: Mapping[str, Tensor], parts: tuple[Part, ...]) -> Tensor:
    regions = [(part, part.region(values[part.tensor], group.count)) for part in parts]
    if group.elementwise:
        return regions[0][1]
    sums = [
        region.sum(dtype=torch.float32).reshape(1)  # in 16 bits a sum overflows, or is rounded to a tie
        if part.dim is None
        else _along(region, part.dim).reshape(group.count, part.width).sum(dim=1)
        for part, region in regions
    ]
    return torch.stack(sums).sum(dim=0)


def _along(region: Tensor, dim: int) -> Tensor:
    """Return the sum over all other dimensions; a bias has none."""
    return region.float() if region.dim() == 1 else region.sum(dim=1 - dim, dtype=torch.float32)
