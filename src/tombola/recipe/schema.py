"""The JSON schema of recipes, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tombola.recipe.claims import Claim
from tombola.recipe.recipe import Recipe

Schema = dict[str, Any]
REF = "#/$defs/"


def recipe_schema() -> Schema:
    """Return the schema of recipe files, with lists of values for grids, `variants` and `per_task`."""
    recipe = Recipe.model_json_schema()
    definitions: Schema = recipe.pop("$defs")
    listed = set(_listed([recipe, *definitions.values()]))
    for kind in (recipe, *(kind for name, kind in definitions.items() if f"{REF}{name}" not in listed)):
        _open_to_grids(kind)
    fields = {**recipe["properties"]}
    laid_over = {name: field for name, field in fields.items() if name != "plugins"}
    part = {"type": "object", "properties": laid_over, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tombola recipe",
        "type": "object",
        "properties": {
            **fields,
            "variants": {
                "type": "object",
                "description": "named alternatives, each with the settings that differ",
                "default": {},
                "additionalProperties": {"anyOf": [{"$ref": f"{REF}Part"}, {"type": "null"}]},
            },
            "per_task": {
                "type": "object",
                "description": "settings that differ for single tasks, in a grid over tasks",
                "default": {},
                "additionalProperties": {"$ref": f"{REF}Part"},
            },
            "claims": {
                "type": "object",
                "description": "hypotheses by name, each of one variant over another, to test on the results",
                "default": {},
                "additionalProperties": {"anyOf": [{"$ref": f"{REF}Claim"}, {"type": "null"}]},
            },
        },
        "required": ["model", "task"],
        "additionalProperties": False,
        "$defs": {**definitions, "Claim": Claim.model_json_schema(), "Part": part},
    }


def _listed(schema: Any, in_list: bool = False) -> Iterator[str]:
    """Yield the references inside lists, where a list of values makes no grid."""
    if isinstance(schema, dict):
        if in_list and "$ref" in schema:
            yield schema["$ref"]
        for key, inner in schema.items():
            yield from _listed(inner, in_list or key == "items")
    elif isinstance(schema, list):
        for inner in schema:
            yield from _listed(inner, in_list)


def _open_to_grids(kind: Schema) -> None:
    """Allow lists of values everywhere, and partial settings: a variant contains only what differs."""
    required = [name for name in kind.pop("required", []) if name == "method"]
    if required:
        kind["required"] = required
    for name, field in kind.get("properties", {}).items():
        about = {key: field[key] for key in ("description", "default") if key in field}
        value = {
            key: content for key, content in field.items() if key not in ("description", "default", "title")
        }
        if name not in ("method", "kind", "name", "about") and _is_one_value(value):
            kind["properties"][name] = {
                "anyOf": [value, {"type": "array", "items": value, "minItems": 1}],
                **about,
            }


def _is_one_value(schema: Schema) -> bool:
    options = schema.get("anyOf", [schema])
    return all(option.get("type") in ("string", "integer", "number", "boolean", "null") for option in options)
