"""Every promise on the pages of the published systems is kept: its command runs, here on a tiny model."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.systems.data import make_place
from tests.systems.pages import COMING, FEATURES, SYSTEMS, Row, rows
from tombola.cli import VERBS, app
from tombola.recipe.builtin import find_recipe, recipe_names
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.recipe.share import check_share
from tombola.results.transfer import transfer_grid

RECIPES = ("run", "share", "transfer")
SMALL = ["precision=fp32", "data.train=40", "data.evaluation=16", "train.batch_size=4", "train.max_length=16"]
OWN = {  # what makes a recipe small besides
    "bert_tickets/squad": ["train.epochs=1", "train.max_length=32", "data.task_settings.doc_stride=4"],
    "bert_tickets/mlm": ["train.steps=4", "seed=1"],
    "super_tickets/mtl_quick": ["train.epochs=1", "data.train=16"],
}
SEARCHES = {"robust_tickets/quick": "search.train.epochs=2", "srnets/quick": "search.train.epochs=1"}
FEWEST = {"bert_tickets": 24, "super_tickets": 18, "robust_tickets": 13, "srnets": 20, "rose": 13}


def smaller(command: tuple[str, ...], model: Path) -> list[str]:
    """The command, on a tiny model and little data."""
    if command[0] not in RECIPES:
        return [str(model) if word == "minilm" else word for word in command]
    recipe = command[1]
    changes = [f"model={model}", *SMALL, *OWN.get(recipe, ["train.epochs=1"])]
    if recipe in SEARCHES and not any(word.startswith(("search=", "search='")) for word in command):
        changes.append(SEARCHES[recipe])
    given = {word.split("=", 1)[0] for word in command if "=" in word}
    if recipe == "bert_tickets/squad":
        changes.append("seed=1")
    return [*command, *(one for one in changes if one.split("=", 1)[0] not in given), "--no-report"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("systems")
    make_place(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", SYSTEMS)
def test_every_row_is_shown_by_its_command(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as a reader would: later rows use what earlier ones wrote."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("TOMBOLA_DATA", str(place / "data"))
    monkeypatch.setenv("TOMBOLA_STORE", str(place / "store"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    shutil.rmtree(place / "runs", ignore_errors=True)
    failed = {}
    for row in rows(page, FEATURES):
        for command in row.commands:
            words = smaller(command, place / "model")
            done = CliRunner().invoke(app, words)
            if done.exit_code != 0:
                failed[row.what] = f"tombola {' '.join(words)}: {done.exception!r} {done.output[-300:]}"
    assert not failed, "\n".join(f"{what}: {why}" for what, why in failed.items())


@pytest.mark.parametrize("page", SYSTEMS)
def test_every_page_has_both_tables_and_every_row_a_command(page: str) -> None:
    features, coming = rows(page, FEATURES), rows(page, COMING)
    assert len(features) >= FEWEST[page]
    assert len(coming) >= 7
    for row in [*features, *coming]:
        assert row.commands, row.identity
        assert {command[0] for command in row.commands} <= set(VERBS)
    assert len({row.what for row in features}) == len(features)


@pytest.mark.parametrize(
    "row", [row for page in SYSTEMS for part in (FEATURES, COMING) for row in rows(page, part)],
    ids=lambda row: row.identity,
)  # fmt: skip
def test_every_recipe_on_the_pages_is_valid(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.yaml").write_text(
        "{name: corpus, version: 1, kind: masked-lm, text: text, metrics: [masked_accuracy], "
        "source: {files: {train: train.txt, validation: valid.txt}}}"
    )
    for command in row.commands:
        if command[0] not in RECIPES:
            continue
        assert command[1] in recipe_names()
        words = [word for word in command[2:] if "=" in word and not word.startswith("-")]
        raw = load_recipe(find_recipe(command[1]), words)
        if command[0] == "share":
            check_share(raw)
        elif command[0] == "transfer":
            named = {
                option: [command[i + 1] for i, word in enumerate(command) if word == option]
                for option in ("--source", "--target")
            }
            expand(transfer_grid(raw, named["--source"], named["--target"]))
        else:
            expand(raw)


def test_every_published_recipe_is_on_a_page_that_users_come_from() -> None:
    text = {
        page: " ".join(" ".join(c) for row in rows(page, COMING) for c in row.commands) for page in SYSTEMS
    }
    assert "srnets/imp_finetuned" in text["srnets"]
    missing = [
        name
        for name in recipe_names()
        if name.startswith("srnets/") and not name.endswith("quick") and name not in text["srnets"]
    ]
    assert not missing
