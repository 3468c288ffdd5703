"""The parts of the documentation that come from the code are as fresh as the code."""

import importlib.util
import re
from pathlib import Path

import pytest
import typer

from tombola.cli import app
from tombola.recipe.builtin import recipe_names

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "evidence" not in path.parts),
]


def build():
    specification = importlib.util.spec_from_file_location(
        "build_reference", ROOT / "tools" / "build_reference.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["recipe.schema.json", "recipe.md", "commands.md"])
def test_the_reference_is_fresh(name):
    module = build()
    written = (module.DOCS / name).read_text(encoding="utf-8")
    assert written == module.FILES[name](), "run `python tools/build_reference.py` and commit what it writes"


def test_the_reference_names_every_method_loss_and_gate():
    text = (build().DOCS / "recipe.md").read_text(encoding="utf-8")
    for name in ("method: iterative", "method: learned", "kind: poe", "kind: hard_concrete", "`sparsity`"):
        assert name in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_only_commands_and_recipes_that_there_are(page):
    text = page.read_text(encoding="utf-8")
    verbs = set(typer.main.get_command(app).commands)
    assert set(re.findall(r"^(?:\$ )?tombola ([a-z]+)", text, re.MULTILINE)) <= verbs
    named = re.findall(r"tombola +(?:run|study|share|transfer) +([a-z_]+/[a-z_0-9]+)", text)
    assert set(named) <= set(recipe_names())


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []
