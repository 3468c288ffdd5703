"""Store masks and scores, each in one safetensors file with the units and a checksum in the header.

The bits of a mask take little more than their entropy, see `tombola.masks.coding`; scores are stored as they are.
"""

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
from tombola.masks import coding
from tombola.masks.base import Base
from tombola.masks.bits import fits
from tombola.masks.groups import Group
from tombola.masks.layout import Layout
from tombola.masks.units import Units

MASK = "mask.safetensors"
"""The mask file of a ticket or a stage."""
Kind = Literal["mask", "scores"]
Array = NDArray[Any]


class Header(BaseModel):
    """The header of a file: its units, so that it can be read without the model, and its checksum."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    version: Literal[2]
    granularity: str
    base: Base
    layout: Layout
    sha256: str
    """Checksum of the stored arrays."""
    codings: dict[str, coding.Coding] = {}
    """The coding of each group's array; masks only."""
    digest: str = ""
    """Checksum of this header, the caller's metadata, and the shapes and types of the arrays."""


def write(
    path: str | PathLike[str],
    kind: Kind,
    units: Units,
    arrays: Mapping[str, Array],
    metadata: Mapping[str, str],
) -> None:
    """Write one array per group, the units, and the caller's metadata."""
    codings, stored = {}, dict(arrays)
    if kind == "mask":
        for group in units.groups:
            codings[group.name], stored[group.name] = coding.encode(arrays[group.name], group.count)
    header = Header(
        kind=kind,
        version=2,
        granularity=units.granularity,
        base=units.base,
        layout=units.layout,
        sha256=_checksum(units, stored),
        codings=codings,
    )
    header = header.model_copy(update={"digest": _digest(header, stored, metadata)})
    write_headed(path, kind, stored, header.model_dump_json(exclude_defaults=True), metadata, "numpy")


def read(path: str | PathLike[str], kind: Kind) -> tuple[Units, dict[str, Array], dict[str, str]]:
    """Read the units, the array of each group and the metadata of a file, and reject a damaged one."""
    stored, text, metadata = read_headed(path, kind, "numpy")
    try:
        header = Header.model_validate_json(text)
        units = Units.from_layout(header.layout, header.granularity, header.base)
    except (ValidationError, UnknownName, KeyError, ZeroDivisionError) as error:
        raise DamagedArtefact(
            f"{path} has a malformed header ({_first(error)}): copy or download it again."
        ) from error
    if header.kind != kind:
        raise TombolaError(f"{path} is a file of kind {header.kind!r}, not {kind!r}.")
    if (
        stored.keys() != units.by_name.keys()
        or _checksum(units, stored) != header.sha256
        or header.digest not in ("", _digest(header, stored, metadata))
    ):
        raise DamagedArtefact(f"{path} does not match its checksum: it was damaged or changed.")
    if kind == "mask":
        stored = {group.name: _decoded(path, group, stored[group.name], header) for group in units.groups}
    return units, stored, metadata


def _decoded(path: str | PathLike[str], group: Group, code: Array, header: Header) -> Array:
    try:
        bits = coding.decode(header.codings[group.name], code, group.count)
    except (KeyError, ValueError, TypeError) as error:
        raise DamagedArtefact(f"{path}: the bits of {group.name} cannot be read ({error}).") from error
    if not fits(bits, group.count):
        raise DamagedArtefact(f"{path}: the bits of {group.name} do not fit its {group.count} units.")
    return bits


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
