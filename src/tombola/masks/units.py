"""The prunable units of a model at one granularity, as named groups of slices of its tensors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from tombola.errors import MaskMismatch, RecipeError, TombolaError
from tombola.families import family_of
from tombola.masks.base import Base, fingerprint
from tombola.masks.groups import Group, Part, groups_of
from tombola.masks.layout import Layout, loaded_parameters_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Units:
    """The prunable units of a model: enough to build, expand and store masks without the model itself."""

    granularity: str
    layout: Layout
    groups: tuple[Group, ...]
    base: Base

    @classmethod
    def of(
        cls,
        model: "PreTrainedModel",
        granularity: str,
        base: Base | None = None,
        *,
        classifier: bool = False,
        biases: bool = False,
        layers: Sequence[int] | None = None,
    ) -> "Units":
        """Return the units of any model of a known family. Pass `base` to avoid hashing the model.

        Args:
            model: The model.
            granularity: The kind of unit: `weight`, `head`, `head+ffn` …
            base: The identity of the pre-trained model, if known.
            classifier: Whether the matrices of the task head are prunable too.
            biases: Whether the biases are prunable too, entry by entry; only with granularity `weight`.
            layers: The prunable layers; all by default.
        """
        if biases and granularity != "weight":
            raise TombolaError(
                f"biases can only be pruned together with single weights, not with {granularity}."
            )
        layout = Layout.of(model, classifier=classifier, biases=biases, layers=layers)
        if "layer" in granularity.split("+"):
            for layer in set(family_of(model).fixed_layers).intersection(layers or ()):
                raise RecipeError(
                    f"search.layers: layer {layer} of a {model.config.model_type} model differs from the others and "
                    "cannot be removed: leave it out"
                )
        return cls.from_layout(layout, granularity, base or fingerprint(model))

    @classmethod
    def from_layout(cls, layout: Layout, granularity: str, base: Base) -> "Units":
        """Return the units of a layout; a joint granularity is written "head+ffn".

        Args:
            layout: The model's prunable matrices.
            granularity: The kind of unit.
            base: The identity of the pre-trained model.
        """
        groups = [group for name in granularity.split("+") for group in groups_of(layout, name)]
        return cls(granularity, layout, tuple(groups), base)

    def __str__(self) -> str:
        return f"{self.count} {self.granularity} units of {self.base}"

    def __repr__(self) -> str:
        return f"Units({self.base.model_type} {self.granularity}: {self.count:,})"

    def join(self, other: "Units") -> "Units":
        """Return both kinds of units together, such as heads and FFNs; no weight may belong to both.

        Args:
            other: Other units of the same model.
        """
        shared = self._covers.keys() & other._covers.keys()
        if self.layout.matrices != other.layout.matrices or shared:
            reason = f"both cover {min(shared)}" if shared else "they belong to different models"
            raise MaskMismatch(
                f"{self.granularity} and {other.granularity} units cannot be joined: {reason}."
            )
        return Units(
            f"{self.granularity}+{other.granularity}", self.layout, self.groups + other.groups, self.base
        )

    @property
    def kinds(self) -> list[str]:
        """The kinds of unit: several if the granularity is a joint one."""
        return self.granularity.split("+")

    @property
    def family(self) -> str:
        """The name of the model's family."""
        return self.layout.family

    @cached_property
    def count(self) -> int:
        """The number of units."""
        return sum(group.count for group in self.groups)

    @cached_property
    def weights(self) -> int:
        """The number of prunable weights that the units cover."""
        return sum(group.weights for group in self.groups)

    @property
    def prunable(self) -> int:
        """The number of prunable weights of the whole model, covered by these units or not."""
        return self.layout.prunable

    @property
    def parameters(self) -> int:
        """The total number of parameters of the base model."""
        return self.layout.parameters

    @cached_property
    def by_name(self) -> dict[str, Group]:
        """The groups by name."""
        return {group.name: group for group in self.groups}

    @cached_property
    def _covers(self) -> dict[str, list[tuple[Group, Part]]]:
        covers: dict[str, list[tuple[Group, Part]]] = {}
        for group in self.groups:
            for part in (*group.parts, *group.biases):
                covers.setdefault(part.tensor, []).append((group, part))
        return covers

    def same_as(self, other: "Units") -> bool:
        """Return whether masks over both can be combined bit by bit: the same units of equally shaped matrices.

        Args:
            other: The units to compare with.
        """
        mine, theirs = (
            (units.granularity, units.family, units.layout.matrices, units.layout.biases, units.groups)
            for units in (self, other)
        )
        return mine == theirs

    def without(self, kind: str) -> "Units":
        """Return the units without one kind of matrix, as in `without("pooler")`.

        Args:
            kind: The kind of matrix.
        """
        matrices = tuple(matrix for matrix in self.layout.matrices if matrix.kind != kind)
        layout = self.layout.model_copy(update={"matrices": matrices})
        return Units.from_layout(layout, self.granularity, self.base)

    def only(self, granularity: str) -> "Units":
        """Return the units of one kind among several, such as the heads of `head+ffn`.

        Args:
            granularity: The kind of unit.
        """
        return Units.from_layout(self.layout, granularity, self.base)

    def at_weights(self) -> "Units":
        """Return the same model's units at weight granularity."""
        return Units.from_layout(self.layout, "weight", self.base)

    def matrices(self, model: "PreTrainedModel") -> dict[str, torch.nn.Parameter]:
        """Return the tensors that the units cover, by name; those of the head have the prefix `head.`.

        Args:
            model: A model of the same geometry.
        """
        parameters = loaded_parameters_of(model)
        names = dict.fromkeys(part.tensor for group in self.groups for part in group.parts)
        return {name: parameters[name] for name in names}

    def spread(self, values: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        """Broadcast one value per unit over every stored tensor; entries outside all units get 1.

        Differentiable; yields one tensor at a time. Multiply it with the stored tensor to get the masked weights.

        Args:
            values: A tensor with one value per unit for every group.
        """
        shapes = self.layout.shapes
        for tensor, covers in self._covers.items():
            parts = [(part, group, values[group.name]) for group, part in covers]
            yield tensor, _spread(shapes[tensor], parts)


def _spread(shape: tuple[int, ...], covers: list[tuple[Part, Group, Tensor]]) -> Tensor:
    part, _, values = covers[0]
    if len(covers) == 1 and part.dim is None and part.slab is None and values.shape == shape:
        return values
    spread = torch.ones(shape, dtype=values.dtype, device=values.device)
    for part, group, values in covers:
        region = part.region(spread, group.count)
        region.copy_(part.spread(values, len(shape)).expand_as(region))
    return spread
