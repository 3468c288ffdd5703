"""Read recipes: from YAML and `key=value` overrides to a raw mapping, which `expand` checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from tombola.errors import RecipeError, UnknownName
from tombola.foundations.plugins import find_plugin_file, load_installed_plugins, load_plugins
from tombola.foundations.sequences import as_tuple
from tombola.foundations.settings import TAGS, Settings, settings_type
from tombola.foundations.yaml12 import parse_yaml
from tombola.recipe.recipe import Recipe
from tombola.tasks.data_files import data_advice, is_data_file

Raw = dict[str, Any]

LAID_OVER = ("per_task", "variants")
"""The keys whose values are merged into the rest of a recipe."""
REPLACED = {"sparsity": ("heads", "ffns")}
"""The settings of a variant or task that a change to another setting replaces too: both say how much to remove."""


def load_recipe(
    source: Path | str | Mapping[str, Any], overrides: Iterable[str] = (), /, **settings: Any
) -> Raw:
    """Read a recipe, apply changes, and load its plugins. `expand` checks the result.

    Changes win: they also replace settings in `per_task` and in variants. `variants=[NAME, …]` keeps only these
    variants, and `variants.NAME=null` drops one, with the claims about those that go. `variants={…}` replaces all
    of them.

    Args:
        source: A recipe file or a mapping.
        overrides: Changes as `key=value`.
        **settings: Changes by keyword, with `__` or `.` between the keys.
    """
    raw = _with_text_names(dict(source) if isinstance(source, Mapping) else read_recipe(Path(source)))
    for key, value in {**parse_overrides(overrides), **settings}.items():
        raw = _override(raw, key.replace("__", ".").split("."), value)
    load_installed_plugins()
    load_plugins(_plugin_names(raw))
    return raw


def _with_text_names(raw: Raw) -> Raw:
    """Return the recipe with variants and tasks named by texts, as changes name them, unless two would coincide."""
    named = {key: raw[key] for key in LAID_OVER if isinstance(raw.get(key), dict)}
    texts = {key: {str(name): part for name, part in parts.items()} for key, parts in named.items()}
    return {**raw, **{key: parts for key, parts in texts.items() if len(parts) == len(named[key])}}


def read_recipe(path: Path) -> Raw:
    """Read the mapping in a recipe file, and resolve the paths of plugins next to it."""
    raw = _read(path)
    if isinstance(raw.get("plugins"), list):
        raw["plugins"] = [_plugin_path(name, path.parent) for name in _plugin_names(raw)]
    return raw


def parse_overrides(overrides: Iterable[str]) -> Raw:
    """Return the values of `key=value` overrides by dotted key."""
    parsed = {}
    for override in as_tuple(overrides):
        key, equals, text = override.partition("=")
        if not equals or not key:
            raise RecipeError(f"{override!r}: write overrides as key=value, e.g. draw.sparsity=0.5")
        parsed[key] = _parse_value(key, text)
    return parsed


def merge(base: Raw, changes: Raw) -> Raw:
    """Merge `changes` into `base`. A mapping with another `method` or `kind` replaces the whole mapping."""
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and not _changes_kind(old, value):
            merged[key] = merge(old, value)
        else:
            merged[key] = value
    return merged


def _override(raw: Raw, path: list[str], value: Any) -> Raw:
    """Apply one change to a recipe."""
    nested = value
    for part in reversed(path):
        nested = {part: nested}
    if path == ["variants"]:
        if isinstance(value, list | tuple):
            return _with_variants(raw, [str(name) for name in value])
        return {**raw, "variants": value}
    if path[0] == "variants" and len(path) == 2 and value is None:
        return _without_variant(raw, path[1])
    merged = merge(raw, nested)
    if path[0] in LAID_OVER:
        return merged
    for key in LAID_OVER:
        if isinstance(merged.get(key), dict):
            merged[key] = {
                name: _drop_overridden(part, nested) if isinstance(part, dict) else part
                for name, part in merged[key].items()
            }
    return merged


def _with_variants(raw: Raw, names: list[str]) -> Raw:
    """Return the recipe with only the named variants, and without the claims about others."""
    variants = raw.get("variants")
    if not isinstance(variants, dict):
        raise RecipeError("variants: the recipe has none to choose from")
    if not names:
        raise RecipeError("variants: name at least one; to remove all of them, set variants=null")
    for name in names:
        if name not in variants:
            raise RecipeError(str(UnknownName("variant", name, variants)))
    kept = {name: changes for name, changes in variants.items() if name in names}
    return without_claims_about(variants.keys() - kept, {**raw, "variants": kept})


def _without_variant(raw: Raw, name: str) -> Raw:
    """Return the recipe without a variant, and without the claims about it."""
    variants = raw.get("variants")
    if not isinstance(variants, dict) or not variants:
        raise RecipeError(f"variants.{name}: the recipe has no variants")
    if name not in variants:
        raise RecipeError(str(UnknownName("variant", name, variants)))
    if len(variants) == 1:
        raise RecipeError(f"variants.{name}: is the only variant; to remove it, set variants=null")
    return _with_variants(raw, [other for other in variants if other != name])


def without_claims_about(variants: Collection[str], raw: Raw) -> Raw:
    """Return the recipe without the claims that compare one of these variants."""

    def concerns(claim: Any) -> bool:
        return isinstance(claim, dict) and any(str(claim.get(key)) in variants for key in ("variant", "over"))

    claims = raw.get("claims")
    if not isinstance(claims, dict):
        return raw
    return {**raw, "claims": {name: claim for name, claim in claims.items() if not concerns(claim)}}


def _drop_overridden(part: Raw, typed: Raw, kind: type[BaseModel] = Recipe) -> Raw:
    """Return the settings of a variant or task without those that a change overrides.

    Settings that choose their own method or kind would hide the change. It is merged into them, as far as they have
    such settings, or replaces them if it chooses another method or kind.
    """
    replaced = {name for key in typed for name in REPLACED.get(key, ())}
    kept = {key: value for key, value in part.items() if key not in replaced}
    for key, value in typed.items():
        old = part.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            field = kind.model_fields.get(key)
            inner = settings_type(field.annotation, old) if field else None
            if inner is not None and any(tag in old for tag in TAGS):
                known = {name: new for name, new in value.items() if name in inner.model_fields}
                kept[key] = value if _changes_kind(old, value) else merge(old, known)
            else:
                kept[key] = _drop_overridden(old, value, inner or Settings)
        elif key in part and not (isinstance(value, dict) and old is None):
            del kept[key]
    return kept


def _changes_kind(old: Raw, new: Raw) -> bool:
    """Return whether new settings have another `method` or `kind`."""
    return any(tag in new and new[tag] != old.get(tag) for tag in TAGS)


def _plugin_names(raw: Raw) -> list[str]:
    names = raw.get("plugins") or []
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise RecipeError(f"plugins: takes a list of Python files or modules, not {names!r}")
    return list(names)


def _plugin_path(name: str, base: Path) -> str:
    return str(find_plugin_file(name, base)) if name.endswith(".py") else name


def _read(path: Path) -> Raw:
    if not path.is_file():
        near = sorted(str(p) for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        raise (
            UnknownName("recipe file", str(path), near)
            if near
            else RecipeError(f"there is no recipe file {path}")
        )
    if is_data_file(path):
        raise RecipeError(data_advice(path))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read ({error})") from None
    raw = _parse(text, str(path))
    if raw is None:
        raise RecipeError(f"{path}: is empty; a recipe needs at least model and task")
    if isinstance(raw, list) and path.suffix == ".json":
        raise RecipeError(data_advice(path))
    if isinstance(raw, dict) and {"source", "text"} <= set(raw):
        raise RecipeError(f"{path}: is a task file, not a recipe: pass a recipe, and task={path}")
    if not isinstance(raw, dict):
        raise RecipeError(f"{path}: a recipe must be a mapping of settings, not a {type(raw).__name__}")
    return raw


def _parse_value(key: str, text: str) -> Any:
    """Parse the value of an override. A missing closing bracket means that the shell split it at a space."""
    torn = any(text.count(left) > text.count(right) for left, right in ("{}", "[]"))
    try:
        return _parse(text, f"override {key}")
    except RecipeError as error:
        advice = f"; quote the change, so that the shell does not split it: '{key}={text} …'" if torn else ""
        raise RecipeError(f"{error}{advice}") from None


def _parse(text: str, where: str) -> Any:
    try:
        return parse_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise RecipeError(f"{where}{line}: not valid YAML: {getattr(error, 'problem', error)}") from None
