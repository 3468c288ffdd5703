"""A family: where an architecture of transformers keeps its layers, heads, FFNs and pooler, as data."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from tombola.errors import ModelError

if TYPE_CHECKING:
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Location(_Data):
    """Where a matrix is below its layer: a module, or block `block` of `of` of a fused module's outputs."""

    module: str
    block: int = 0
    of: int = 1

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        return {"module": value} if isinstance(value, str) else value


class Attention(_Data):
    """The attention's matrices; a model may lack the position matrices (DeBERTa with `share_att_key`).

    Then what else depends on the number of heads: attributes of the attention module that hold it, or the
    heads' total width, and the positional argument of its forward that carries one bias per head.
    """

    query: Location
    key: Location
    value: Location
    output: Location
    position_key: Location | None = None
    position_query: Location | None = None
    head_counts: tuple[str, ...] = ()
    widths: tuple[str, ...] = ()
    head_bias: int | None = None


class FeedForward(_Data):
    """The FFN's matrices; `gate` where the FFN multiplies two projections of its input."""

    up: Location
    down: Location
    gate: Location | None = None


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

    def layers_of(self, model: "PreTrainedModel") -> "nn.ModuleList":
        """The model's transformer layers, first to last."""
        return cast("nn.ModuleList", model.base_model.get_submodule(self.layers))

    def heads_in(self, config: "PretrainedConfig") -> int:
        """The number of query heads per layer."""
        return getattr(config, self.heads)

    def kv_heads_in(self, config: "PretrainedConfig") -> int:
        """The number of key/value heads per layer: the heads that can be removed on their own."""
        return getattr(config, self.kv_heads) if self.kv_heads else self.heads_in(config)

    def head_dim_in(self, config: "PretrainedConfig") -> int:
        """A head's width: the config's own where it sets one, else the hidden size split among the heads."""
        own = getattr(config, self.head_dim, None) if self.head_dim else None
        return own or config.hidden_size // self.heads_in(config)


@cache
def families() -> list[Family]:
    """Every family Tombola knows, by name."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return [Family.model_validate(yaml.safe_load(file.read_text(encoding="utf-8"))) for file in files]


def family_of(model: "PreTrainedModel") -> Family:
    """The family of the model, by its config's model type."""
    model_type = model.config.model_type
    by_type = {known: family for family in families() for known in family.model_types}
    if model_type not in by_type:
        raise ModelError(
            f"Tombola does not know where a {model_type!r} model keeps its heads and FFNs: "
            f"add src/tombola/families/{model_type}.yaml (see CONTRIBUTING), "
            f"or take a model of a known type: {', '.join(sorted(by_type))}."
        )
    return by_type[model_type]
