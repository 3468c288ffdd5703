"""Read lists of the heads and FFNs that a structured ticket removes, as Super Tickets and others save them."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from tombola.errors import DataError
from tombola.masks.mask import Mask
from tombola.masks.units import Units

Heads = dict[int, set[int]]


def read_heads(path: Path, entry: str | None = None, first: int = 0) -> Heads:
    """Read the removed heads of each layer.

    The file holds JSON from layers to heads, `{"0": [1, 3]}`, or from tasks to such mappings, of which `entry` names
    one; or text such as `0:1,3 5:0`. `first` is the number of the first layer and head.
    """
    content = _content(path)
    if isinstance(content, str):
        pairs = re.findall(r"(\d+)\s*:\s*([\d,\s]*?)(?=\s*(?:\d+\s*:|$))", content)
        if not pairs or re.sub(r"[\d,:\s]", "", content):
            raise DataError(f"{path}: expected heads as `layer:head,head`, e.g. `0:1,3 5:0`.")
        content = {}
        for layer, heads in pairs:
            content.setdefault(layer, []).extend(int(head) for head in re.findall(r"\d+", heads))
    if not isinstance(content, dict):
        raise DataError(f"{path}: expected an object that maps layers to lists of heads.")
    if content and all(isinstance(value, dict) for value in content.values()):
        content = _entry(path, content, entry)
    return {
        _number(path, layer, first): {_number(path, head, first) for head in _list(path, heads)}
        for layer, heads in content.items()
    }


def read_ffns(path: Path, entry: str | None = None, first: int = 0) -> set[int]:
    """Read the layers whose FFN is removed: a JSON list, a mapping from tasks to such lists, or numbers in a text."""
    content = _content(path)
    if isinstance(content, str):
        if re.sub(r"[\d,\s]", "", content):
            raise DataError(f"{path}: expected a list of layer numbers.")
        content = [int(number) for number in re.findall(r"\d+", content)]
    if isinstance(content, dict):
        content = _entry(path, content, entry)
    return {_number(path, layer, first) for layer in _list(path, content)}


def mask_from_lists(units: Units, heads: Mapping[int, Iterable[int]], ffns: Iterable[int]) -> Mask:
    """Return the mask that removes exactly these heads and FFNs."""
    kept = {group.name: torch.ones(group.shape, dtype=torch.bool) for group in units.groups}
    groups = {(group.layer, group.kind): group for group in units.groups}
    layers = 1 + max(group.layer for group in units.groups if group.layer is not None)
    removed = [(layer, "head", head) for layer, removed_heads in heads.items() for head in removed_heads]
    removed += [(layer, "ffn", 0) for layer in ffns]
    for layer, kind, place in removed:
        group = groups.get((layer, kind))
        if group is None:
            raise DataError(f"there is no layer {layer}: the model has layers 0 to {layers - 1}.")
        if place >= group.count:
            raise DataError(
                f"there is no {kind} {place} in layer {layer}, which has {kind}s 0 to {group.count - 1}."
            )
        kept[group.name][place] = False
    return Mask.from_bools(units, kept)


def _content(path: Path) -> Any:
    """Parse a JSON file; return any other file as text."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({error}).") from None
    if path.suffix != ".json":
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{path}: is not JSON ({error}).") from None


def _entry(path: Path, content: Mapping[str, Any], entry: str | None) -> Any:
    if entry is None and len(content) == 1:
        return next(iter(content.values()))
    if entry is None or entry not in content:
        names = ", ".join(content)
        raise DataError(
            f"{path}: has masks for several tasks ({names}): choose one of them as the entry, not {entry!r}."
        )
    return content[entry]


def _list(path: Path, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"{path}: expected a list of numbers, not {value!r}.")
    return value


def _number(path: Path, value: Any, first: int) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value)) or int(value) < first:
        raise DataError(f"{path}: {value!r} is not a layer or head number; these start at {first}.")
    return int(value) - first
