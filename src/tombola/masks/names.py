"""The names of units and scopes in recipes."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator

from tombola.errors import UnknownName

Scope = Literal["global", "local", "row"]
"""Rank all units together, per group, or per output row of a matrix."""

Granularity = Literal["weight", "neuron", "head", "ffn", "layer", "row", "column"]

STRUCTURED = frozenset({"head", "neuron", "ffn", "layer"})
"""The units whose removal makes matrices smaller."""

_JOINABLE = {"head": "attention", "neuron": "ffn", "ffn": "ffn"}


def known_units(name: str) -> str:
    """Validate the name of a granularity, or of several joined by + that share no weights."""
    parts = name.split("+")
    for part in parts:
        if part not in get_args(Granularity):
            raise ValueError(str(UnknownName("granularity", part, get_args(Granularity))))
    places = [_JOINABLE.get(part, "everything") for part in parts]
    if len(parts) > 1 and ("everything" in places or len(set(places)) < len(places)):
        raise ValueError(
            f"{name!r} covers some weights twice: combine head with ffn or neuron, e.g. head+ffn"
        )
    return name


def is_structured(units: str) -> bool:
    """Return whether units, such as `head+ffn`, can be cut out of a model."""
    return set(units.split("+")) <= STRUCTURED


UnitsName = Annotated[str, AfterValidator(known_units)]
"""A valid `units` entry of a recipe."""
