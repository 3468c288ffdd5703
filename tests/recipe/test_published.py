"""Every recipe of a published system against the settings that were published, as the recipe expands to them."""

from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tombola.recipe.builtin import find_recipe, recipe_names
from tombola.recipe.cell import Cell
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.share import ShareRecipe, check_share

TABLE: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "published_settings.yaml").read_text())
SYSTEMS = ("bert_tickets", "robust_tickets", "rose", "srnets", "super_tickets")
PUBLISHED = [
    name for name in recipe_names() if name.partition("/")[0] in SYSTEMS and not name.endswith("quick")
]
NEEDED = ("learning_rate", "batch_size", "max_length", "group_by_length", "weight_decay")
"""The settings of a training that the table must give for every cell."""


@cache
def cells_of(name: str) -> list[tuple[Cell, ShareRecipe | None]]:
    """The cells of one seed, each with the recipe of the joint training if there is one."""
    raw = load_recipe(find_recipe(name), seed=1)
    if "tasks" in raw:
        shared = check_share(raw)
        return [(shared.for_task(task, 1), shared) for task in shared.tasks]
    return [(cell, None) for cell in expand(raw)]


def concerned(entry: dict[str, Any]) -> Iterator[tuple[str, Cell, ShareRecipe | None]]:
    where = entry.get("where", {})
    for name in PUBLISHED:
        if any(fnmatch(name, pattern) for pattern in entry["recipes"]):
            for cell, shared in cells_of(name):
                facts = {"task": cell.recipe.task, "variant": cell.variant}
                if all(
                    facts[key] in (value if isinstance(value, list) else [value])
                    for key, value in where.items()
                ):
                    yield name, cell, shared


def setting(path: str, cell: Cell, shared: ShareRecipe | None) -> Any:
    """What stands at a path, as YAML would write it; a retraining that there is not has what the ticket has."""
    first, _, rest = path.partition(".")
    if first == "together":
        assert shared is not None, f"{path} is for recipes that share tickets"
        found: Any = shared.train
    else:
        found = getattr(cell.recipe, first)
    if path == "draw.scope":
        return cell.recipe.scope
    for part in rest.split("."):
        found = getattr(found, part)
    return list(found) if isinstance(found, tuple) else found


def identity(entry: dict[str, Any]) -> str:
    where = " ".join(map(str, entry.get("where", {}).values()))
    first = next(path for key, part in entry.items() if key not in ("recipes", "where") for path in part)
    return f"{entry['recipes'][0]} {where} {first}"


@pytest.mark.parametrize("entry", TABLE, ids=identity)
def test_recipes_have_the_published_settings(entry: dict[str, Any]) -> None:
    assert set(entry) <= {"recipes", "where", "settings", "differs", "chosen", "grid"}
    expected = {
        **entry.get("settings", {}),
        **{
            path: one["ours"] for path, one in {**entry.get("differs", {}), **entry.get("chosen", {})}.items()
        },
    }
    found = list(concerned(entry))
    assert found, "the entry is about no cell of any recipe"
    wrong = {
        (name, cell.recipe.task, cell.variant, path): actual
        for name, cell, shared in found
        for path, value in expected.items()
        if applies(path, cell) and (actual := setting(path, cell, shared)) != value
    }
    assert not wrong
    for path, values in entry.get("grid", {}).items():
        for name in {name for name, _, _ in found}:
            cells = [(cell, shared) for one, cell, shared in found if one == name and applies(path, cell)]
            assert {setting(path, cell, shared) for cell, shared in cells} == set(values), name


def applies(path: str, cell: Cell) -> bool:
    """Whether a cell has such a part: a dense model is neither searched, drawn nor retrained."""
    part = path.partition(".")[0]
    if part in ("search", "draw"):
        return cell.recipe.search is not None
    return part != "retrain" or (cell.recipe.search is not None and cell.recipe.retrain is not None)


@pytest.mark.parametrize("entry", [one for one in TABLE if one.keys() & {"differs", "chosen"}], ids=identity)
def test_every_difference_has_a_reason_and_is_one(entry: dict[str, Any]) -> None:
    for one in (*entry.get("differs", {}).values(), *entry.get("chosen", {}).values()):
        assert len(str(one["reason"]).split()) > 3
    for one in entry.get("differs", {}).values():
        assert one["ours"] != one["published"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_cell_is_in_the_table(name: str) -> None:
    said: dict[int, set[str]] = {}
    for entry in TABLE:
        for one, cell, _ in concerned(entry):
            if one == name:
                said.setdefault(id(cell), set()).update(
                    path for key in ("settings", "differs", "chosen") for path in entry.get(key, {})
                )
    for cell, _ in cells_of(name):
        missing = [one for one in NEEDED if f"train.{one}" not in said.get(id(cell), set())]
        if not missing and not {"train.epochs", "train.steps"} & said[id(cell)]:
            missing = ["epochs"]
        assert not missing, (cell.variant, cell.recipe.task)
