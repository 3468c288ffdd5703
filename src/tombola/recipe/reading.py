"""Reading recipes: from YAML and `key=value` overrides to a raw mapping, which `expand` checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tombola.errors import RecipeError, UnknownName
from tombola.foundations.settings import TAGS
from tombola.foundations.yaml12 import parse_yaml

Raw = dict[str, Any]


def load_recipe(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), **settings: Any
) -> Raw:
    """Read a recipe and lay `key=value` overrides over it. The result is raw: `expand` checks it."""
    raw = dict(source) if isinstance(source, Mapping) else _read(Path(source))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise RecipeError(f"{override!r}: an override is written key=value, e.g. draw.sparsity=0.5")
        settings[key] = _parse(text, f"override {key}")
    for key, value in settings.items():
        *path, last = key.replace("__", ".").split(".")
        nested: Raw = {last: value}
        for part in reversed(path):
            nested = {part: nested}
        raw = merge(raw, nested)
    return raw


def merge(base: Raw, changes: Raw) -> Raw:
    """Lay `changes` over `base`. A mapping with a `method` or `kind` of its own replaces another one's settings."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and not _other(old, value):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def _other(old: Raw, new: Raw) -> bool:
    return any(tag in new and new[tag] != old.get(tag) for tag in TAGS)


def _read(path: Path) -> Raw:
    if not path.is_file():
        near = sorted(str(p) for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        raise (
            UnknownName("recipe file", str(path), near)
            if near
            else RecipeError(f"there is no recipe file {path}")
        )
    raw = _parse(path.read_text(), str(path))
    if raw is None:
        raise RecipeError(f"{path}: is empty; a recipe says at least model and task")
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: a recipe is a mapping of settings, this is {type(raw).__name__}")
    return raw


def _parse(text: str, where: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise RecipeError(f"{where}{line}: not valid YAML: {getattr(error, 'problem', error)}") from None
