"""A family: where an architecture of transformers keeps its layers, heads, FFNs and pooler, as data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

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
    """Where a matrix is below its layer: a module, or one of the parts that a fused module's outputs consist of.

    Args:
        module: The module's path.
        parts: The names of the matrices in a fused module, in their order.
    """

    module: str
    parts: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"module": value} if isinstance(value, str) else value


class Attention(_Data):
    """The attention's matrices; a model may lack the position matrices (DeBERTa with `share_att_key`).

    Where `together` says so, the query's module also holds key and value, and the three of each head lie together.
    Then what else depends on the number of heads: attributes of the attention module that hold it, or that of the
    key/value heads, or the heads' total width, keys that its forward reads in the config, and the positional argument
    of its forward that carries one bias per head. Last, the norm inside the attention module, where that adds the
    residual itself.
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
            raise ValueError("attention: name key and value, or say that they are together with the query")
        return self


class FeedForward(_Data):
    """The FFN's matrices; `gate` where the FFN multiplies two projections of its input."""

    up: Location
    down: Location
    gate: Location | None = None


class ConfigKeys(_Data):
    """How a config says the sizes of a model whose layers are all alike.

    Args:
        layers: The key of the number of layers.
        neurons: The key of the FFN's width.
        free_heads: Whether the heads together may be narrower than the hidden size.
        per_layer: Keys of lists with one entry for each layer.
        layer_number_settings: Keys that, where true, make a layer compute by its number, so that none can be left out.
        keeps_first: Whether the first layer is built unlike the others, so that it cannot be left out.
    """

    layers: str
    neurons: str
    free_heads: bool = False
    per_layer: tuple[str, ...] = ()
    layer_number_settings: tuple[str, ...] = ()
    keeps_first: bool = False


class Family(_Data):
    """One architecture: paths of its matrices, and the names under which its config keeps head counts."""

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
    """Keys of the config with the value that they must have, or with another key whose value they must have."""
    why: str = ""
    """What is wrong with a model that has other values."""

    def check(self, config: PretrainedConfig) -> None:
        """Refuse a model of the family's type that is built in another way.

        Args:
            config: The model's config.

        Raises:
            ModelError: With the key and its value.
        """
        for key, wanted in self.only.items():
            own = getattr(config, key, None)
            if own != (getattr(config, wanted) if isinstance(wanted, str) else wanted):
                raise ModelError(
                    f"this {config.model_type} model cannot be taken apart: {self.why} ({key} is {own}, not {wanted})"
                )

    def layers_of(self, model: PreTrainedModel) -> nn.ModuleList:
        """The model's transformer layers, first to last."""
        return cast("nn.ModuleList", model.base_model.get_submodule(self.layers))

    def heads_in(self, config: PretrainedConfig) -> int:
        """The number of query heads per layer."""
        return int(getattr(config, self.heads))

    def kv_heads_in(self, config: PretrainedConfig) -> int:
        """The number of key/value heads per layer: the heads that can be removed on their own."""
        return getattr(config, self.kv_heads) if self.kv_heads else self.heads_in(config)

    def head_dim_in(self, config: PretrainedConfig) -> int:
        """A head's width: the config's own where it sets one, else the hidden size split among the heads."""
        own = getattr(config, self.head_dim, None) if self.head_dim else None
        return int(own or config.hidden_size // self.heads_in(config))

    def part_of(self, config: PretrainedConfig, location: Location, name: str, outputs: int) -> range:
        """Which of a module's outputs a matrix has: all of them, or a part whose size goes by its heads.

        Args:
            config: The model's config.
            location: Where the matrix is.
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
    "t5": "its first layer computes one position bias per head for all layers, so that no layer can lose heads by "
    "itself, and its decoder attends to its encoder",
    "bart": "it is two stacks of layers, of which the decoder attends to the encoder, and a family describes one",
}
"""Types that are known, and why a model of them cannot be described."""
REFUSED |= {"mt5": REFUSED["t5"], "mbart": REFUSED["bart"]}

_registered: Registry[Family] = Registry("family")
"""The families that are described outside the package."""


@cache
def _builtin() -> tuple[Family, ...]:
    return tuple(_read(file) for file in sorted(Path(__file__).parent.glob("*.yaml")))


def families() -> list[Family]:
    """Every family Tombola knows, by name; those from outside the package come last."""
    return [*_builtin(), *(family for _, family in _registered.items())]


def register_family(description: str | Path | Mapping[str, Any]) -> Family:
    """Describe an architecture that the package does not know.

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
                f"family {family.name!r}: {known.name!r} describes {', '.join(known.model_types)} models already"
            )
    return _registered(family.name)(family)


def family_of_type(model_type: str) -> Family | None:
    """The family of the models of a type, if there is one."""
    return next((family for family in families() if model_type in family.model_types), None)


def family_of(model: PreTrainedModel) -> Family:
    """The family of the model, by its config's model type."""
    model_type = model.config.model_type
    family = family_of_type(model_type)
    if family is None and model_type in REFUSED:
        raise ModelError(f"A {model_type!r} model cannot be taken apart: {REFUSED[model_type]}.")
    if family is None:
        known = sorted(name for family in families() for name in family.model_types)
        raise ModelError(
            f"Tombola does not know where a {model_type!r} model keeps its heads and FFNs: describe it with "
            f"tombola.families.register_family in a plugin (see CONTRIBUTING), "
            f"or take a model of a known type: {', '.join(known)}."
        )
    family.check(model.config)
    return family


def _read(path: Path) -> Family:
    return checked(Family, read_yaml(path, "family", ModelError), f"{path}: family")
