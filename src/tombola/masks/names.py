"""What recipes call units, and the scope of a draw."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator

from tombola.errors import UnknownName

Scope = Literal["global", "local", "row"]
"""One ranking of all units, one in each group, or one in each output row of a matrix."""

Granularity = Literal["weight", "neuron", "head", "ffn", "layer", "row", "column"]

_JOINABLE = {"head": "attention", "neuron": "ffn", "ffn": "ffn"}


def known_units(name: str) -> str:
    """A granularity's name, or two that share no weight joined by +; anything else is refused."""
    parts = name.split("+")
    for part in parts:
        if part not in get_args(Granularity):
            raise ValueError(str(UnknownName("granularity", part, get_args(Granularity))))
    places = [_JOINABLE.get(part, "everything") for part in parts]
    if len(parts) > 1 and ("everything" in places or len(set(places)) < len(places)):
        raise ValueError(f"{name!r} covers some weights twice: join head with ffn or neuron, as head+ffn")
    return name


UnitsName = Annotated[str, AfterValidator(known_units)]
"""What a recipe may say of its units."""
