"""Writes what the documentation takes from the code: the recipe's schema, the keys of recipes and tasks, the commands.

    python tools/build_reference.py

A test runs the same functions and fails if the files are not fresh.
"""

import json
import re
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from tombola.cli import app
from tombola.recipe.schema import REF, Schema, recipe_schema
from tombola.tasks import Task, task_kinds
from tombola.tasks.definition import Layout
from tombola.tasks.metrics import metrics_for

DOCS = Path(__file__).parent.parent / "docs" / "reference"
INTRODUCTION = """# Recipe

Every key of a recipe, with its default. Set only what differs. A list in place of a single value makes a grid.
`variants` names alternatives that share the rest; `per_task` holds settings that differ for single tasks of a grid;
`claims` states which variant should beat which, and is [tested on the results](../howto/claims.md).
`retrain`, and searches that train, inherit unset keys from `train`. Overrides on the command line take precedence.
`plugins` adds your own methods, losses, attacks and more to the lists below ([how](../howto/method.md)).

Editors complete and check recipes with [the JSON schema](recipe.schema.json), which `tombola validate --schema` also
prints: make `# yaml-language-server: $schema=recipe.schema.json` the first line of the recipe.
"""
TASK_INTRODUCTION = """# Task

Every key of a task file, with its default. `tombola task init DATA` writes one for a CSV, TSV, JSONL, JSON or Parquet
file; [Your own data](../howto/data.md) shows the rest by example. Put a task file next to its data, or in a folder
above it. `tombola validate FILE --data` checks it and describes the data.

```yaml
name: complaints
version: 1
text: message
labels: [billing, delivery, other]
metrics: [accuracy, macro_f1]
source:
  files: {train: complaints.csv}
  map: {label: category}
holdout:
  validation: {of: train, share: 0.1, stratified: true}
  test: {of: train, share: 0.2, stratified: true}
reported: test
```
"""
KINDS_INTRODUCTION = """## Kinds { #kinds }

`kind` is what a model predicts, and determines the available `metrics`. The settings of a kind go under `settings`, or
in a recipe under `data.task_settings`.
"""


def schema_text() -> str:
    """The schema, as it is in the file."""
    return json.dumps(recipe_schema(), indent=1, ensure_ascii=False) + "\n"


def recipe_text() -> str:
    """The reference of the recipe: a table of its keys, and one for every mapping inside."""
    schema = recipe_schema()
    definitions = {name: kind for name, kind in schema["$defs"].items() if name != "Part"}
    parts = [INTRODUCTION, _table(schema["properties"], definitions)]
    for name, kind in definitions.items():
        about = (kind.get("description") or "").split("\n\n")[0].replace("\n", " ")
        heading = f"## {_title(name, kind)} {{ #{name.lower()} }}"
        parts += [heading, about, _table(kind.get("properties", {}), definitions)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def task_text() -> str:
    """The reference of task files: a table of the keys, one for every mapping inside, and the kinds of task."""
    schema = Task.model_json_schema()
    definitions: dict[str, Schema] = schema["$defs"]
    layout = list(Layout.model_fields)
    parts = [TASK_INTRODUCTION, _table(schema["properties"], definitions)]
    for name in ("Source", "Layout", "Holdout", "Companions"):
        kind = definitions[name]
        heading = f"## {TASK_HEADINGS[name]} {{ #{name.lower()} }}"
        about = kind["description"].split("\n\n")[0].replace("\n", " ")
        if name == "Layout":
            text = f"The same keys as in [source](#source): {', '.join(f'`{key}`' for key in layout)}."
        else:
            text = _table(kind["properties"], definitions)
        parts += [heading, about, text]
    parts.append(KINDS_INTRODUCTION)
    for name, task_kind in sorted(task_kinds.items()):
        parts += [
            f"### kind: {name}",
            f"{_sentence(task_kind.about)} Metrics: {', '.join(metrics_for(name))}.",
        ]
        settings = task_kind.settings.model_json_schema()
        if settings.get("properties"):
            parts.append(_table(settings["properties"], {}))
    return "\n\n".join(part.strip() for part in parts) + "\n"


TASK_HEADINGS = {
    "Source": "source",
    "Layout": "source.alternatives",
    "Holdout": "holdout.NAME",
    "Companions": "companions",
}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def commands_text() -> str:
    """The help of every command."""
    with_context = typer.Context(typer.main.get_command(app), info_name="tombola")
    text = get_docs_for_click(
        obj=typer.main.get_command(app), ctx=with_context, name="tombola", title="Commands"
    )
    text = re.sub(r"\[/?bold\]", "**", text)
    text = _with_whole_lines(text, typer.main.get_command(app))
    return re.sub(r"\[default: ([^\]]*?)\\?\]", r"[default: \1]", text).replace("\\[", "[").strip() + "\n"


def _with_whole_lines(text: str, group: Any) -> str:
    """The lists of commands with their whole first lines, which typer cuts short."""
    for name, command in group.commands.items():
        line = (command.help or "").partition("\n")[0]
        text = re.sub(
            rf"^\* `{name}`: .*$",
            lambda _, line=line, name=name: f"* `{name}`: {line}",
            text,
            flags=re.MULTILINE,
        )
        if hasattr(command, "commands"):
            text = _with_whole_lines(text, command)
    return text


def _title(name: str, kind: Schema) -> str:
    """What the settings are called in a recipe: the method or kind they are of, or their class."""
    for tag in ("method", "kind", "name"):
        told = kind.get("properties", {}).get(tag, {})
        if "const" in told:
            return f"{tag}: {told['const']}"
    return name.removesuffix("Settings")


def _table(fields: dict[str, Schema], definitions: dict[str, Schema]) -> str:
    rows = ["| key | type | default | description |", "| --- | --- | --- | --- |"]
    for name, field in fields.items():
        takes = _takes(field, definitions)
        default = _default(field)
        rows.append(f"| `{name}` | {takes} | {default} | {_cell(field.get('description', ''))} |")
    return "\n".join(rows)


def _takes(field: Schema, definitions: dict[str, Schema]) -> str:
    if "$ref" in field:
        name = field["$ref"].removeprefix(REF)
        return f"[{_title(name, definitions[name])}](#{name.lower()})" if name in definitions else "settings"
    options = field.get("anyOf") or field.get("oneOf")
    if options:
        told = [_takes(option, definitions) for option in options if not _is_grid(option, options)]
        return ", ".join(dict.fromkeys(told))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if isinstance(field.get("additionalProperties"), dict):
        return f"mapping to {_takes(field['additionalProperties'], definitions)}"
    if field.get("type") == "array":
        return "list" + (f" of {_takes(field['items'], definitions)}" if "items" in field else "")
    return {"null": "null", "object": "mapping"}.get(field.get("type", ""), field.get("type", "")) + _range(
        field
    )


def _is_grid(option: Schema, options: list[Schema]) -> bool:
    """The list of values that every single value may be: said once in the introduction."""
    return option.get("type") == "array" and option.get("items") in options


def _range(field: Schema) -> str:
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    told = [f"{sign} {field[key]:g}" for key, sign in words.items() if key in field]
    return f" {', '.join(told)}" if told else ""


def _default(field: Schema) -> str:
    if "default" not in field:
        return "" if "const" in field else "required"
    value: Any = field["default"]
    return "" if isinstance(value, dict) or value == "" else f"`{_cell(json.dumps(value))}`"


def _cell(text: str) -> str:
    """The text of a table's cell: settings in braces become code, since at its end they would be read as attributes."""
    coded = re.sub(r"(`[^`]*`)|(\{[^{}]*\})", lambda found: found[1] or f"`{found[2]}`", text)
    return coded.replace("|", "\\|").replace("\n", " ")


FILES = {
    "recipe.schema.json": schema_text,
    "recipe.md": recipe_text,
    "task.md": task_text,
    "commands.md": commands_text,
}

if __name__ == "__main__":
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (DOCS / name).write_text(text(), encoding="utf-8")
        print(DOCS / name)
