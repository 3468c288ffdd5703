"""Settings of the draw: how much of a model a ticket keeps, and how that is spread over its layers."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from tombola.foundations.settings import Settings
from tombola.masks.names import Scope
from tombola.masks.pattern_names import PatternName, implied_sparsity

Layout = Literal["free", "uniform"]
Layers = PositiveInt | Literal["importance", "most"]
Quantity = Literal["sparsity", "speedup", "latency", "parameters"]
TIMED: tuple[Quantity, ...] = ("speedup", "latency")
"""Targets that are times, and so depend on the machine."""
AMOUNTS = ("sparsity", "heads", "ffns", "speedup", "latency", "parameters")
"""The settings that say how much to remove."""


class Target(NamedTuple):
    """What a ticket must meet: a quantity and its value."""

    quantity: Quantity
    value: float


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


def _allow_null(schema: dict[str, Any]) -> None:
    """Allow null in a schema, which resets the value of the recipe that a change is merged into."""
    value = {key: schema.pop(key) for key in list(schema) if key not in ("description", "default", "title")}
    schema["anyOf"] = [value, {"type": "null"}]


class DrawSettings(Settings):
    """How many units to remove, and how to rank them."""

    sparsity: float = Field(
        0.5, ge=0, lt=1, description="exact share of the units to remove", json_schema_extra=_allow_null
    )
    scope: Scope | None = Field(
        None,
        description="units to rank together: all (global), those of a matrix or layer (local), or the weights of an "
        "output row (row); by default global, row for wanda and ria, local for sparsegpt",
    )
    pattern: PatternName | None = Field(
        None,
        description="for single weights: 2:4 (or any N:M) keeps 2 of every 4 along a matrix's inputs, instead of "
        "sparsity; 16x16 removes whole blocks of outputs by inputs",
    )
    heads: int | None = Field(None, ge=0, description="number of heads to remove, instead of sparsity")
    ffns: int | None = Field(None, ge=0, description="number of FFNs to remove, instead of sparsity")
    perturb: float = Field(
        0.0, ge=0, le=1, description="control: share of the kept units to swap with removed ones"
    )

    speedup: float | None = Field(
        None, gt=1, description="instead of sparsity: measured speed-up over the dense model"
    )
    latency: float | None = Field(
        None, gt=0, description="instead of sparsity: measured latency of a forward pass, in milliseconds"
    )
    parameters: float | None = Field(
        None, gt=0, lt=1, description="instead of sparsity: share of all parameters to keep"
    )
    layout: Layout = Field(
        "free",
        description="free: layers may keep different numbers of units; uniform: equal layers, some removed as a whole, "
        "so that a plain config describes the small model (sparsity is then that of the layers' weights)",
    )
    layers: Layers = Field(
        "importance",
        description="layout: uniform: number of layers to keep; importance: the number that keeps the most importance; "
        "most: the highest number that the target allows with at least an eighth of the neurons each",
    )
    multiple: int = Field(8, gt=0, description="with a layout or a target: keep neurons in multiples of this")
    batch_size: Annotated[
        tuple[PositiveInt, ...],
        BeforeValidator(_as_tuple, json_schema_input_type=PositiveInt | tuple[PositiveInt, ...]),
    ] = Field(
        (32,),
        min_length=1,
        description="speedup, latency: texts per forward pass, one number or a list; every size must meet the target",
    )
    length: int | None = Field(
        None, gt=0, description="speedup, latency: tokens per text; by default the task's own texts"
    )
    threads: int | None = Field(
        None, gt=0, description="speedup, latency: threads per forward pass; by default PyTorch's setting"
    )
    device: str = Field(
        "cpu",
        description="speedup, latency: device to time on, cpu or an accelerator such as cuda",
    )
    rounds: int = Field(
        1,
        gt=0,
        description="number of pruning rounds, with training of the small model in between; needs retrain.shrink",
    )

    @property
    def target(self) -> Target | None:
        """What the ticket must meet, if that is more than a share of units in one ranking."""
        for quantity in ("speedup", "latency", "parameters"):
            if (value := getattr(self, quantity)) is not None:
                return Target(quantity, value)
        return Target("sparsity", self.sparsity) if self.layout == "uniform" else None

    @property
    def counts(self) -> dict[str, int] | None:
        """The number of units of each kind to remove, if given instead of a sparsity."""
        counts = {"head": self.heads, "ffn": self.ffns}
        return {kind: count for kind, count in counts.items() if count is not None} or None

    @model_validator(mode="before")
    @classmethod
    def _complete_sparsity(cls, raw: Any) -> Any:
        """Drop `sparsity: null`, which resets the sparsity of a recipe; set what a pattern such as 2:4 implies."""
        if not isinstance(raw, dict) or raw.get("sparsity") is not None:
            return raw
        raw = {name: value for name, value in raw.items() if name != "sparsity"}
        with suppress(ValueError):  # the validator of the pattern reports it
            implied = implied_sparsity(raw["pattern"]) if isinstance(raw.get("pattern"), str) else None
            return raw if implied is None else {**raw, "sparsity": implied}
        return raw

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        if self.pattern is None:
            return self
        implied = implied_sparsity(self.pattern)
        for name in ("heads", "ffns", "speedup", "latency", "parameters"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"pattern: applies to single weights, but {name} to whole units; remove one of them"
                )
        if self.layout == "uniform":
            raise ValueError(
                "pattern: applies to single weights, but layout: uniform to whole units; remove one of them"
            )
        if self.perturb:
            raise ValueError("pattern: swapping units would break it; leave out perturb")
        if implied is None:
            return self
        if abs(self.sparsity - implied) > 1e-9:
            raise ValueError(
                f"pattern: {self.pattern} removes {implied:.4g} of the weights, not {self.sparsity:g}; remove one of "
                "them, or unset the recipe's sparsity with draw.sparsity=null"
            )
        if self.scope is not None:
            raise ValueError(f"scope: {self.pattern} ranks the weights within each group; leave it out")
        return self

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.counts and "sparsity" in self.model_fields_set:
            raise ValueError(
                "heads and ffns: replace sparsity; remove one or the other, or unset the recipe's sparsity with "
                "draw.sparsity=null"
            )
        if self.counts and self.scope not in (None, "global"):
            raise ValueError("heads and ffns: are ranked over the whole model; use scope: global")
        return self

    @model_validator(mode="after")
    def _check_target(self) -> Self:
        named = [
            name for name in AMOUNTS if name in self.model_fields_set and getattr(self, name) is not None
        ]
        if self.target is not None and len(named) > 1:
            raise ValueError(f"{named[1]}: is an alternative to {named[0]}: remove one of them")
        if self.layers != "importance" and self.layout != "uniform":
            raise ValueError("layers: needs equal layers; use layout: uniform")
        if self.layout == "uniform" and self.counts:
            raise ValueError(
                f"{named[0]}: does not work with layout: uniform; set sparsity, speedup, latency or parameters"
            )
        if self.target is not None and self.scope not in (None, "global"):
            raise ValueError(
                f"scope: {self.scope} only works with a sparsity and a free layout; leave it out"
            )
        if self.target is not None and self.perturb:
            raise ValueError("perturb: swapping units would change the cost of a layer; leave it out")
        timed = self.target is not None and self.target.quantity in TIMED
        for name in ("batch_size", "length", "threads", "device", "multiple", "rounds"):
            of_time = name in ("batch_size", "length", "threads", "device")
            needed = timed if of_time else self.target is not None
            if not needed and getattr(self, name) != type(self).model_fields[name].default:
                targets = (
                    "speedup or latency" if of_time else "speedup, latency, parameters or layout: uniform"
                )
                raise ValueError(f"{name}: only works with {targets}")
        return self
