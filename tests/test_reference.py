"""The parts of the documentation that come from the code are as fresh as the code."""

import importlib.util
import inspect
import json
import re
import runpy
from pathlib import Path

import pytest
import typer

import tombola
import tombola.api
from tests.children import run_python
from tombola.attacks.base import Attack
from tombola.augmentations import Augmentation
from tombola.bias.settings import BiasModel
from tombola.cli import app
from tombola.defenses import Defense
from tombola.gates.base import Budget, Gate
from tombola.models.controls import Control
from tombola.objectives.settings import Adversary, LossSettings
from tombola.recipe.builtin import recipe_names
from tombola.recipe.catalogue import KINDS
from tombola.recipe.recipe import Recipe
from tombola.search import SearchSettings
from tombola.tasks import Task, task_kinds
from tombola.tasks.definition import Companions, Holdout, Source

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "evidence" not in path.parts),
]


def build():
    specification = importlib.util.spec_from_file_location(
        "build_reference", ROOT / "tools" / "build_reference.py"
    )
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rebuilt():
    """The pages, built in a process in which no test has registered anything."""
    code = (
        "import json, sys; sys.path.insert(0, 'tools'); import build_reference; "
        "print(json.dumps({name: text() for name, text in build_reference.FILES.items()}))"
    )
    return json.loads(run_python("-c", code))


@pytest.mark.parametrize("name", ["recipe.schema.json", "recipe.md", "task.md", "commands.md"])
def test_the_reference_is_fresh(name, rebuilt):
    written = (build().DOCS / name).read_text(encoding="utf-8")
    assert written == rebuilt[name], "run `python tools/build_reference.py` and commit what it writes"


@pytest.mark.parametrize(
    "base",
    [
        Adversary,
        Attack,
        Augmentation,
        BiasModel,
        Budget,
        Control,
        Defense,
        Gate,
        LossSettings,
        SearchSettings,
    ],
)
def test_the_reference_describes_every_kind_that_a_recipe_may_name(base):
    text = (build().DOCS / "recipe.md").read_text(encoding="utf-8")
    names = list(base.choices)
    assert len(names) > 1
    missing = [name for name in names if f"\n## {base.tag}: {name} {{ #" not in text]
    assert missing == []


def test_the_reference_has_a_row_for_every_key_of_a_recipe():
    text = (build().DOCS / "recipe.md").read_text(encoding="utf-8")
    keys = {field.alias or name for name, field in Recipe.model_fields.items()}
    assert [key for key in keys if f"\n| `{key}` |" not in text] == []


def test_the_reference_describes_every_key_and_kind_of_a_task():
    text = (build().DOCS / "task.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.MULTILINE))
    models = (Task, Source, Holdout, Companions, *(kind.settings for _, kind in task_kinds.items()))
    keys = [key for model in models for key in model.model_fields]
    assert [key for key in keys if not rows.get(key)] == []
    assert [name for name in task_kinds if f"\n### kind: {name}\n" not in text] == []


def test_the_reference_describes_every_verb():
    text = (build().DOCS / "commands.md").read_text(encoding="utf-8")
    assert [
        verb for verb in typer.main.get_command(app).commands if f"\n## `tombola {verb}`\n" not in text
    ] == []


def test_the_reference_documents_every_public_name():
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    homes = set(re.findall(r"^::: [\w.]+\.(\w+)$", text, re.MULTILINE))
    named = {*tombola.__all__, *tombola.api.__all__} - {"__version__"}
    assert named - homes - {"TombolaError"} == set()
    assert "::: tombola.errors\n" in text


def test_the_reference_documents_what_public_functions_take_and_return():
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    homes = set(re.findall(r"^::: [\w.]+\.(\w+)$", text, re.MULTILINE))
    named = set()
    for name in tombola.api.__all__:
        function = getattr(tombola.api, name)
        named |= set(re.findall(r"\b[A-Z]\w+", str(inspect.signature(function).return_annotation)))
    assert named - homes - {"Path", "None"} == set()
    assert {"Score", "Prediction", "Local", "Ray", "Watcher"} <= homes


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_only_commands_and_recipes_that_there_are(page):
    text = page.read_text(encoding="utf-8")
    verbs = set(typer.main.get_command(app).commands)
    assert set(re.findall(r"^(?:\$ )?tombola ([a-z]+)", text, re.MULTILINE)) <= verbs
    named = re.findall(r"tombola +(?:run|study|share|transfer) +([a-z_]+/[a-z_0-9]+)", text)
    assert set(named) <= set(recipe_names())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_only_lists_and_make_targets_that_there_are(page):
    text = page.read_text(encoding="utf-8")
    lists = {one.split()[0] for one in KINDS}
    assert set(re.findall(r"`tombola list ([a-z]+)", text)) <= lists
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for line in re.findall(r"`make ([a-z -]+)`", text) for target in line.split()}
    assert named <= targets


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "systems").glob("*.md")), ids=lambda page: page.stem)
def test_the_site_shows_the_measurements_on_the_page_of_each_system(page):
    built = runpy.run_path(str(ROOT / "tools" / "docs_evidence.py"))["on_page_markdown"](
        page.read_text(encoding="utf-8")
    )
    (first, *_) = (ROOT / "docs" / "evidence" / page.name).read_text(encoding="utf-8").splitlines()[2:]
    assert first in built
    assert "[Measurements]" not in built


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []
