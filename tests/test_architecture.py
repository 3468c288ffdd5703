"""The page about the architecture says what the package is: its subpackages, their order, and the files of a run."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tombola"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def contract():
    """The subpackages from top to bottom, as import-linter checks them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (one["layers"] for one in settings["tool"]["importlinter"]["contracts"])
    return [name.strip().removeprefix("tombola.") for layer in layers for name in layer.split("|")]


def test_the_contract_has_every_subpackage():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert found - {"__init__", "__main__"} == set(contract())


def test_the_page_lists_the_subpackages_in_the_order_of_the_contract():
    (listing,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert re.findall(r"^ (\w+) ", listing, re.MULTILINE) == contract()


def test_the_picture_shows_the_same_subpackages_in_the_same_order():
    picture = (ROOT / "docs" / "subpackages.svg").read_text(encoding="utf-8")
    shown = re.findall(r'font-weight="600">([\w| ]+)<', picture)
    assert [name for one in shown for name in one.split(" | ")] == contract()


def test_the_files_of_a_run_are_there():
    steps = PAGE[PAGE.index("## A run, step by step") : PAGE.index("## Stages")]
    folder, missing = "", []
    for row in re.findall(r"^\| \d+ \| (.*?) \|", steps, re.MULTILINE):
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", row):
            folder = name.rpartition("/")[0] if "/" in name.rstrip("/") else folder
            path = PACKAGE / name if "/" in name.rstrip("/") else PACKAGE / folder / name
            missing += [] if path.exists() else [name]
    assert missing == []


def test_the_wheel_holds_every_data_file_and_every_licence():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    package = ROOT / "src" / "tombola"
    packed = {
        path
        for pattern in settings["tool"]["setuptools"]["package-data"]["tombola"]
        for path in package.glob(pattern)
    }
    data = {
        path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc", ".pyi")
    }
    assert data - packed == set()
    licences = {
        path
        for pattern in settings["project"]["license-files"]
        for path in ROOT.glob(pattern)
        if path.is_file()
    }
    assert {path for path in data if path.name.startswith(("LICENSE", "NOTICE"))} - licences == set()
