"""A mask: one bit per prunable unit, 1 = kept, with its algebra and its effect on a model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tombola.errors import MaskMismatch, TombolaError
from tombola.masks import bits as packed
from tombola.masks import storage
from tombola.masks.base import Base
from tombola.masks.bits import Bits
from tombola.masks.check import check_groups, check_model, check_same
from tombola.masks.groups import Group, removed_shares
from tombola.masks.layout import loaded_parameters_of
from tombola.masks.units import Units

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Mask(Mapping[str, Tensor]):
    """Which units of a model are kept. Immutable; the bits stay packed in memory and on disk."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, units: Units, bits: Mapping[str, Bits], metadata: Mapping[str, str] | None = None
    ) -> None:
        """Create a mask from the packed bits of each group; usually `full`, `from_bools`, `load` or `draw` does."""
        self.units = units
        self.bits = {group.name: bits[group.name] for group in units.groups}
        self.metadata = dict(metadata or {})

    @classmethod
    def full(cls, units: Units) -> "Mask":
        """Return the mask that keeps everything.

        Args:
            units: The units it is over.
        """
        return cls(units, {group.name: packed.ones(group.count) for group in units.groups})

    @classmethod
    def from_bools(cls, units: Units, kept: Mapping[str, Tensor]) -> "Mask":
        """Create a mask from one boolean tensor per group, True = kept.

        Args:
            units: The units that the mask covers.
            kept: A boolean tensor for each group, in the group's shape.
        """
        check_groups("booleans", units, {name: tuple(value.shape) for name, value in kept.items()})
        if any(value.dtype != torch.bool for value in kept.values()):
            raise TombolaError("a mask needs booleans: compare the scores with a threshold, or use draw().")
        return cls(units, {group.name: packed.pack(kept[group.name]) for group in units.groups})

    @property
    def base(self) -> Base:
        """The model that the mask belongs to."""
        return self.units.base

    def bools(self, name: str) -> Tensor:
        """Return a group's bits as a boolean tensor of the group's shape.

        Args:
            name: The name of the group.
        """
        return packed.unpack(self.bits[name], self.units.by_name[name].shape)

    def __getitem__(self, name: str) -> Tensor:
        return self.bools(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    # Algebra

    def __and__(self, other: "Mask") -> "Mask":
        return self._combine(other, np.bitwise_and)

    def __or__(self, other: "Mask") -> "Mask":
        return self._combine(other, np.bitwise_or)

    def __xor__(self, other: "Mask") -> "Mask":
        return self._combine(other, np.bitwise_xor)

    def __invert__(self) -> "Mask":
        counts = {group.name: group.count for group in self.units.groups}
        return Mask(
            self.units, {name: packed.clear_padding(~bits, counts[name]) for name, bits in self.bits.items()}
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        return self.units.same_as(other.units) and all(
            np.array_equal(self.bits[name], other.bits[name]) for name in self.bits
        )

    def __repr__(self) -> str:
        return (
            f"Mask({self.base.model_type} {self.units.granularity}: "
            f"{self.kept:,} of {self.count:,} kept, sparsity {self.sparsity:.4f})"
        )

    def _combine(self, other: "Mask", operation: Callable[[Bits, Bits], Bits]) -> "Mask":
        check_same(self.units, other.units)
        return Mask(self.units, {name: operation(self.bits[name], other.bits[name]) for name in self.bits})

    def join(self, other: "Mask") -> "Mask":
        """Join two masks into one over both kinds of units, such as heads and FFNs.

        Args:
            other: A mask over other units of the same model.
        """
        return Mask(self.units.join(other.units), {**self.bits, **other.bits})

    def without(self, kind: str) -> "Mask":
        """Return the mask without the units of one kind of matrix.

        Args:
            kind: The kind of matrix, such as "pooler".
        """
        units = self.units.without(kind)
        return Mask(units, {group.name: self.bits[group.name] for group in units.groups})

    def on(self, base: Base) -> "Mask":
        """Return the same mask for other weights of the same geometry; raise MaskMismatch for any other model.

        Args:
            base: The identity of the other weights.
        """
        if base.geometry != self.base.geometry:
            raise MaskMismatch(
                f"the mask does not fit this model: it belongs to {self.base}, but the model is {base}."
            )
        return Mask(replace(self.units, base=base), self.bits, self.metadata)

    # Numbers

    @property
    def count(self) -> int:
        """The number of units."""
        return self.units.count

    @property
    def kept(self) -> int:
        """The number of kept units."""
        return sum(packed.population(bits) for bits in self.bits.values())

    @property
    def removed(self) -> int:
        """The number of removed units."""
        return self.count - self.kept

    @property
    def sparsity(self) -> float:
        """The share of units removed."""
        return self.removed / self.count

    @property
    def removed_weights(self) -> int:
        """The number of prunable weights removed."""
        return sum(self._removed_in(group) * group.unit_weights for group in self.units.groups)

    @property
    def weight_sparsity(self) -> float:
        """The share of the model's prunable weights removed."""
        return self.removed_weights / self.units.prunable

    @property
    def parameter_sparsity(self) -> float:
        """The removed weights as a share of all parameters of the base model, embeddings included."""
        return self.removed_weights / self.units.parameters

    def by_layer(self) -> dict[int | None, float]:
        """Return the fraction of removed weights among the covered weights of each layer; the pooler has layer None."""
        return removed_shares(self.units.groups, self._removed_in, lambda group: group.layer)

    def by_kind(self) -> dict[str, float]:
        """Return the fraction of removed weights among the covered weights of each kind of matrix or unit."""
        return removed_shares(self.units.groups, self._removed_in, lambda group: group.kind)

    def table(self) -> dict[tuple[int | None, str], float]:
        """Return the fraction of removed weights in each layer and kind."""
        return removed_shares(self.units.groups, self._removed_in, lambda group: (group.layer, group.kind))

    def overlap(self, other: "Mask") -> float:
        """Return the Jaccard overlap of the kept units: |A ∩ B| / |A ∪ B|, 1 for two empty masks. (BERT-Tickets, §4)

        Masks of different granularities are expanded to weights. Only groups that both masks have count: a language
        model's mask has no pooler.

        Args:
            other: A mask of the same model or of one of equal geometry.
        """
        pairs = list(self._pairs(other))
        both = sum(packed.population(mine & theirs) for mine, theirs in pairs)
        either = sum(packed.population(mine | theirs) for mine, theirs in pairs)
        return both / either if either else 1.0

    def contains(self, other: "Mask") -> bool:
        """Return whether this mask keeps everything the other keeps, over the groups that both masks have.

        Args:
            other: A mask of the same model or of one of equal geometry.
        """
        return not any(bool((theirs & ~mine).any()) for mine, theirs in self._pairs(other))

    def _pairs(self, other: "Mask") -> Iterator[tuple[Bits, Bits]]:
        one, two = self, other
        if self.units.granularity != other.units.granularity:
            one, two = self.expand(), other.expand()
        check_same(*(mask.units.without("pooler").without("classifier") for mask in (one, two)))
        return ((one.bits[name], two.bits[name]) for name in one.bits if name in two.bits)

    def _removed_in(self, group: Group) -> int:
        return group.count - packed.population(self.bits[group.name])

    # On a model

    def expand(self) -> "Mask":
        """Return the same mask at weight granularity, over all prunable weights of the model."""
        if self.units.granularity == "weight":
            return self
        units = self.units.at_weights()
        expanded = Mask.full(units).bits
        spread = dict(self.units.spread(self))
        for group in units.groups:
            (part,) = group.parts
            if part.tensor in spread:
                expanded[group.name] = packed.pack(part.region(spread[part.tensor], group.count))
        return Mask(units, expanded)

    def tensors(self, model: "PreTrainedModel") -> dict[str, Tensor]:
        """Return which entries stay of each tensor that loses some, biases included; names as in `parameters_of`.

        Args:
            model: A model that the mask fits.
        """
        return {name: kept.to(parameter.device) for name, kept, parameter in self._on(model)}

    @torch.no_grad()
    def apply(self, model: "PreTrainedModel") -> None:
        """Zero the removed weights, and the removed units' biases, in place.

        Args:
            model: A model that the mask fits.
        """
        for _, kept, parameter in self._on(model):
            parameter.masked_fill_(~kept.to(parameter.device), 0.0)

    def check(self, model: "PreTrainedModel", base: Base | None = None) -> None:
        """Raise MaskMismatch if the model has a different geometry or started from a different base.

        Args:
            model: The model.
            base: The base that the model started from; without it only the geometry is checked.
        """
        check_model(self.units, model, base)

    def _on(self, model: "PreTrainedModel") -> Iterator[tuple[str, Tensor, torch.nn.Parameter]]:
        self.check(model)
        parameters = loaded_parameters_of(model)
        return (
            (name, kept, parameters[name])
            for name, kept in self.units.spread(self)
            if name in parameters and not bool(kept.all())
        )

    # On disk

    def save(self, path: str | PathLike[str], **metadata: str) -> None:
        """Write one safetensors file: the encoded bits of each group, with the units and the base in the header.

        Args:
            path: The file to write.
            **metadata: Text to keep in the header, by key.
        """
        storage.write(path, "mask", self.units, self.bits, {**self.metadata, **metadata})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Mask":
        """Load a mask that `save` wrote; a damaged or altered file is rejected.

        Args:
            path: The file.
        """
        return cls(*storage.read(path, "mask"))
