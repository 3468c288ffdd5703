"""Masks and scores on disk: one safetensors file each, with the units and a checksum in the header."""

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from tombola.errors import DamagedArtefact, TombolaError, UnknownName
from tombola.foundations.checksums import hash_text
from tombola.foundations.headed_files import read_headed, write_headed
from tombola.masks.base import Base
from tombola.masks.layout import Layout
from tombola.masks.units import Units

MASK = "mask.safetensors"
"""The file of a mask inside a ticket or a stage."""
Kind = Literal["mask", "scores"]
Array = NDArray[Any]


class Header(BaseModel):
    """What a file says of itself: its units, so that it can be read without the model, and its checksum."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    version: Literal[1]
    granularity: str
    base: Base
    layout: Layout
    sha256: str
    digest: str = ""
    """Of the header itself, the caller's metadata, and the form of the arrays."""


def write(
    path: str | PathLike[str],
    kind: Kind,
    units: Units,
    arrays: Mapping[str, Array],
    metadata: Mapping[str, str],
) -> None:
    """Write one array per group, the units that they belong to, and the caller's own metadata."""
    header = Header(
        kind=kind,
        version=1,
        granularity=units.granularity,
        base=units.base,
        layout=units.layout,
        sha256=_checksum(units, arrays),
    )
    header = header.model_copy(update={"digest": _digest(header, arrays, metadata)})
    write_headed(path, kind, arrays, header.model_dump_json(exclude_defaults=True), metadata, "numpy")


def read(path: str | PathLike[str], kind: Kind) -> tuple[Units, dict[str, Array], dict[str, str]]:
    """The units, the array of each group and the metadata of a file, refused unless all of it is whole."""
    arrays, said, metadata = read_headed(path, kind, "numpy")
    try:
        header = Header.model_validate_json(said)
        units = Units.from_layout(header.layout, header.granularity, header.base)
    except (ValidationError, UnknownName, KeyError, ZeroDivisionError) as error:
        raise DamagedArtefact(f"{path} has a malformed header ({_first(error)}): get it again.") from error
    if header.kind != kind:
        raise TombolaError(
            f"{path} holds a file of kind {header.kind!r} where one of kind {kind!r} is wanted."
        )
    if (
        arrays.keys() != units.by_name.keys()
        or _checksum(units, arrays) != header.sha256
        or header.digest not in ("", _digest(header, arrays, metadata))
    ):
        raise DamagedArtefact(f"{path} does not agree with its own checksum: it was damaged or changed.")
    return units, arrays, metadata


def _checksum(units: Units, arrays: Mapping[str, Array]) -> str:
    total = hashlib.sha256()
    for group in units.groups:
        total.update(np.ascontiguousarray(arrays[group.name]).data)
    return total.hexdigest()


def _digest(header: Header, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> str:
    forms = {name: [str(array.dtype), *array.shape] for name, array in arrays.items()}
    about = header.model_dump_json(exclude_defaults=True, exclude={"digest"})
    return hash_text(json.dumps([about, forms, dict(metadata)], sort_keys=True))


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'header'}: {first['msg']}"
    return str(error)
