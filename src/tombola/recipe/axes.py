"""The axes of a grid: every list in a place that takes a single value."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from math import prod
from typing import Any, get_args, get_origin

from tombola.errors import RecipeError
from tombola.foundations.settings import settings_type
from tombola.recipe.reading import Raw
from tombola.recipe.recipe import Recipe

Path = tuple[str, ...]
"""The keys that lead to a setting."""

Axis = tuple[Path, list[Any]]

NAMING = (("name",), ("about",))
"""The settings without effect on a run, which make no axis: their cells would count as several runs of the same."""


def points_of(variant: Raw) -> Iterator[list[tuple[dict[str, Any], Raw]]]:
    """Yield the axis values and the raw recipe of each cell of a variant, in lists of cells that differ in seed."""
    used = _used(variant)
    axes = [axis for axis in _axes(used, Recipe, ()) if axis[0] != ("seed",)]
    for values in itertools.product(*(options for _, options in axes)):
        raw = used
        for (path, _), value in zip(axes, values, strict=True):
            raw = _with(raw, path, value)
        point = {".".join(path): value for (path, _), value in zip(axes, values, strict=True)}
        if isinstance(seeds := raw.get("seed"), list):
            yield [({**point, "seed": seed}, {**raw, "seed": seed}) for seed in seeds]
        else:
            yield [(point, raw)]


def count_points(variant: Raw) -> int:
    """Count the cells of a variant without building them."""
    return prod(len(options) for _, options in _axes(_used(variant), Recipe, ()))


def repeated_values(variant: Raw) -> Iterator[str]:
    """Yield what is wrong with axes that hold a value twice: its cells would count as two runs."""
    for path, options in _axes(_used(variant), Recipe, ()):
        yield from repeated_options(".".join(path), options)


def repeated_options(key: str, options: list[Any]) -> Iterator[str]:
    """Yield what is wrong with a list of values that holds one twice, after its key; 1 and 1.0 are one."""
    plain = (int(one) if isinstance(one, float) and one.is_integer() else one for one in options)
    counts = Counter(json.dumps(option, sort_keys=True, default=str) for option in plain)
    for value in (value for value, count in counts.items() if count > 1):
        yield f"{key}: {value} occurs more than once in the list; write each value once"


def _used(variant: Raw) -> Raw:
    """Return the variant without what a dense model does not use: `draw`, and a grid over `retrain`."""
    if variant.get("search") is not None:
        return variant
    unused = {"draw", *(path[0] for path, _ in _axes(variant, Recipe, ()) if path[0] == "retrain")}
    return {key: value for key, value in variant.items() if key not in unused}


def _axes(raw: Raw, kind: type[Any], path: Path) -> list[Axis]:
    axes: list[Axis] = []
    for key, value in raw.items():
        field = kind.model_fields.get(key)
        if field is None:
            continue
        if isinstance(value, list) and not _takes_list(field.annotation) and (*path, key) not in NAMING:
            if not value:
                raise RecipeError(
                    f"{'.'.join((*path, key))}: an empty list makes an empty grid; give at least one value"
                )
            axes.append(((*path, key), value))
        elif isinstance(value, dict) and (inner := settings_type(field.annotation, value)) is not None:
            axes += _axes(value, inner, (*path, key))
    return axes


def _with(raw: Raw, path: Path, value: Any) -> Raw:
    head, *rest = path
    return {**raw, head: _with(raw[head], tuple(rest), value) if rest else value}


def _takes_list(annotation: Any) -> bool:
    if get_origin(annotation) in (list, tuple) or annotation in (list, tuple):
        return True
    return any(_takes_list(inner) for inner in get_args(annotation))
