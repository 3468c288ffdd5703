"""A family: the location of layers, heads, FFNs and pooler in an architecture, as data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from tombola.errors import ModelError, PluginError
from tombola.foundations.registry import Registry
from tombola.foundations.settings import checked
from tombola.foundations.yaml12 import read_yaml

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Location(_Data):
    """The location of a matrix in its layer: a module, or one part of a fused module's outputs.

    Args:
        module: The module's path.
        parts: The names of the matrices in a fused module, in order.
    """

    module: str
    parts: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"module": value} if isinstance(value, str) else value


class Attention(_Data):
    """The attention's matrices; a model may lack the position matrices (DeBERTa with `share_att_key`).

    With `together`, the query's module also holds key and value, and the three of each head are adjacent. The other
    fields describe what depends on the number of heads: attributes of the attention module that hold it, or that of
    the key/value heads, or the heads' total width; config keys that its forward reads; and the positional argument of
    its forward with one bias per head. `norm` is the norm inside the attention module, if that adds the residual
    itself.
    """

    query: Location
    key: Location | None = None
    value: Location | None = None
    output: Location
    together: bool = False
    position_key: Location | None = None
    position_query: Location | None = None
    head_counts: tuple[str, ...] = ()
    kv_counts: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()
    config_counts: tuple[str, ...] = ()
    head_bias: int | None = None
    norm: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Attention:
        if self.together != (self.key is None) or self.together != (self.value is None):
            raise ValueError(
                "attention: set key and value, or together: true if the query's module contains them"
            )
        return self


class FeedForward(_Data):
    """The FFN's matrices; `gate` if the FFN multiplies two projections of its input."""

    up: Location
    down: Location
    gate: Location | None = None


class ConfigKeys(_Data):
    """The config keys of the sizes of a model whose layers are all alike.

    Args:
        layers: The key of the number of layers.
        neurons: The key of the FFN's width.
        free_heads: Whether the total width of the heads may be smaller than the hidden size.
        per_layer: Keys of lists with one entry for each layer.
        layer_number_settings: Keys that, if true, make a layer's computation depend on its number, so that none can
            be removed.
        keeps_first: Whether the first layer is built differently, so that it cannot be removed.
    """

    layers: str
    neurons: str
    free_heads: bool = False
    per_layer: tuple[str, ...] = ()
    layer_number_settings: tuple[str, ...] = ()
    keeps_first: bool = False


class Family(_Data):
    """One architecture: the paths of its matrices, and the config keys of its head counts."""

    name: str
    model_types: tuple[str, ...]
    layers: str
    attention: Attention
    ffn: FeedForward
    pooler: str | None = None
    heads: str
    kv_heads: str | None = None
    head_dim: str | None = None
    transposed: bool = False
    norm: Literal["post", "pre"]
    config: ConfigKeys | None = None
    only: dict[str, int | str] = {}
    """Config keys with their required value, or with another key whose value they must equal."""
    why: str = ""
    """The reason why a model with other values is rejected."""

    def check(self, config: PretrainedConfig) -> None:
        """Reject a model of the family's type that is built differently.

        Args:
            config: The model's config.

        Raises:
            ModelError: If a config key has another value than required, or does not exist.
        """
        sizes = (self.config.layers, self.config.neurons) if self.config is not None else ()
        for key in (self.heads, self.kv_heads, *sizes, *(wanted for wanted in self.only.values() if wanted)):
            if isinstance(key, str) and not hasattr(config, key):
                raise ModelError(
                    f"the family {self.name!r} reads {key!r} from the config, but a {config.model_type} model has no "
                    "such key: correct the family's description"
                )
        for key, wanted in self.only.items():
            own = getattr(config, key, None)
            if own != (getattr(config, wanted) if isinstance(wanted, str) else wanted):
                raise ModelError(
                    f"this {config.model_type} model cannot be pruned: {self.why} ({key} is {own}, not {wanted})"
                )

    @property
    def fixed_layers(self) -> tuple[int, ...]:
        """The layers that cannot be removed as a whole."""
        return (0,) if self.config is not None and self.config.keeps_first else ()

    def layers_of(self, model: PreTrainedModel) -> nn.ModuleList:
        """Return the model's transformer layers, first to last."""
        from torch.nn import ModuleList

        try:
            layers = model.base_model.get_submodule(self.layers)
        except AttributeError:
            layers = None
        if not isinstance(layers, ModuleList):
            raise ModelError(
                f"this {model.config.model_type} model has no list of layers at {self.layers!r}, where the family "
                f"{self.name!r} expects it: correct the family's description"
            )
        return layers

    def heads_in(self, config: PretrainedConfig) -> int:
        """Return the number of query heads per layer."""
        return int(getattr(config, self.heads))

    def kv_heads_in(self, config: PretrainedConfig) -> int:
        """Return the number of key/value heads per layer: the heads that can be removed individually."""
        return getattr(config, self.kv_heads) if self.kv_heads else self.heads_in(config)

    def head_dim_in(self, config: PretrainedConfig) -> int:
        """Return a head's width: the config's value if set, else the hidden size divided by the heads."""
        own = getattr(config, self.head_dim, None) if self.head_dim else None
        return int(own or config.hidden_size // self.heads_in(config))

    def part_of(self, config: PretrainedConfig, location: Location, name: str, outputs: int) -> range:
        """Return which of a module's outputs belong to a matrix: all, or a part whose size depends on its heads.

        Args:
            config: The model's config.
            location: The location of the matrix.
            name: The matrix's name in the family.
            outputs: The number of the module's outputs.
        """
        if not location.parts:
            return range(outputs)
        heads = {
            "query": self.heads_in(config),
            "key": self.kv_heads_in(config),
            "value": self.kv_heads_in(config),
        }
        sizes = [heads.get(part, 1) for part in location.parts]
        place = location.parts.index(name)
        start, end = (outputs * sum(sizes[:number]) // sum(sizes) for number in (place, place + 1))
        return range(start, end)


REFUSED = {
    "t5": (
        "its first layer computes one position bias per head for all layers, so single layers cannot lose heads, "
        "and its decoder attends to its encoder"
    ),
    "bart": "it has two stacks of layers, whose decoder attends to the encoder, but a family describes only one",
}
"""Known model types that no family can describe, with the reason."""
REFUSED |= {"mt5": REFUSED["t5"], "mbart": REFUSED["bart"]}

_registered: Registry[Family] = Registry("family")
"""The families registered from outside the package."""


@cache
def _builtin() -> tuple[Family, ...]:
    return tuple(_read(file) for file in sorted(Path(__file__).parent.glob("*.yaml")))


def families() -> list[Family]:
    """Return every known family; those from outside the package come last."""
    return [*_builtin(), *(family for _, family in _registered.items())]


def register_family(description: str | Path | Mapping[str, Any]) -> Family:
    """Register an architecture that the package does not know.

    Args:
        description: A mapping as in the package's `families/bert.yaml`, or the path of such a YAML file.
    """
    if isinstance(description, Mapping):
        family = checked(Family, dict(description), "family")
    else:
        family = _read(Path(description))
    for known in families():
        if known.name == family.name or set(known.model_types) & set(family.model_types):
            raise PluginError(
                f"family {family.name!r}: {known.name!r} already describes {', '.join(known.model_types)}"
            )
    return _registered(family.name)(family)


def family_of_type(model_type: str) -> Family | None:
    """Return the family of a model type, if any."""
    return next((family for family in families() if model_type in family.model_types), None)


def family_of(model: PreTrainedModel) -> Family:
    """Return the family of the model, by its config's model type."""
    model_type = getattr(getattr(model, "config", None), "model_type", None)
    if model_type is None:
        raise ModelError(
            f"{type(model).__name__} is not a transformers model: it has no config that names its type. "
            "Pass the model that from_pretrained returned."
        )
    family = family_of_type(model_type)
    if family is None:
        supported = ", ".join(sorted(name for family in families() for name in family.model_types))
        if model_type in REFUSED:
            raise ModelError(
                f"A {model_type!r} model cannot be pruned: {REFUSED[model_type]}. Use an encoder or a decoder of a "
                f"supported type: {supported}."
            )
        raise ModelError(
            f"Tombola does not know where a {model_type!r} model keeps its heads and FFNs: describe it with "
            f"tombola.families.register_family in a plugin, or use a model of a supported type: {supported}."
        )
    family.check(model.config)
    return family


def _read(path: Path) -> Family:
    return checked(Family, read_yaml(path, "family", ModelError), f"{path}: family")
