"""Where the user's folders are, and how they are shown."""

from pathlib import Path

import pytest

from tombola.foundations.folders import (
    absolute,
    by_name,
    cache_folder,
    public_name,
    publishable,
    store_address,
    with_tilde,
)


def test_variables_come_before_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TOMBOLA_CACHE", raising=False)
    monkeypatch.delenv("TOMBOLA_STORE", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "tombola"
    assert store_address() == "~/.cache/tombola/store"
    monkeypatch.setenv("TOMBOLA_CACHE", "~/elsewhere")
    monkeypatch.setenv("TOMBOLA_STORE", "s3://bucket/store")
    assert cache_folder() == tmp_path / "elsewhere"
    assert store_address() == "s3://bucket/store"
    assert store_address("given") == "given"


def test_a_page_names_what_lies_elsewhere_by_its_last_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home" / "somebody", tmp_path / "scratch" / "somebody" / "work"
    for folder in (home, work / "data", work.parent / "models" / "mine"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    (work.parent / "task.yaml").write_text("")
    recipe = {
        "model": str(work.parent / "models" / "mine"),
        "task": "../task.yaml",
        "data": {"folder": str(work / "data")},
        "bias": [f"{home}/bias.json", "hans/train", "1/2 of .."],
        "about": "../.. is a path",
    }
    assert publishable(recipe) == {
        "model": "mine",
        "task": "task.yaml",
        "data": {"folder": "data"},
        "bias": ["~/bias.json", "hans/train", "1/2 of .."],
        "about": "../.. is a path",
    }


def test_only_the_home_folder_itself_becomes_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    text = f"{tmp_path}/link/a, {tmp_path}/real/b, {tmp_path}/link: {tmp_path}/linked {tmp_path}/link-2"
    assert with_tilde(text) == f"~/a, ~/b, ~: {tmp_path}/linked {tmp_path}/link-2"
    monkeypatch.setenv("HOME", "/")
    assert with_tilde("/usr/bin") == "/usr/bin"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/scratch/alice/model", "model"),
        ("~/models/bert/", "bert"),
        ("../../data/films.task.yaml", "films.task.yaml"),
        ("../../data/films.task.yaml/validation+typos", "films.task.yaml/validation+typos"),
        ("C:\\data\\model", "model"),
        ("google-bert/bert-base-uncased", "google-bert/bert-base-uncased"),
        ("validation+typos", "validation+typos"),
        ("x" * 5000, "x" * 5000),
    ],
)
def test_of_a_local_path_only_the_last_part_is_public(name: str, shown: str) -> None:
    assert public_name(name) == shown


def test_paths_anywhere_in_settings_are_shown_by_name() -> None:
    recipe = {
        "model": "/srv/alice/model",
        "evaluate": {"on": ["test", "../x.yaml"]},
        "about": "~ 3/4 of it",
        "n": 3,
    }
    assert by_name(recipe) == {
        "model": "model",
        "evaluate": {"on": ["test", "x.yaml"]},
        "about": "~ 3/4 of it",
        "n": 3,
    }


def test_settings_mean_the_same_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "model").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    here = absolute({"model": "./model", "tasks": ["sst2", "nyu-mll/glue"]})
    monkeypatch.chdir(tmp_path / "b")
    assert absolute({"model": "../a/model", "tasks": ["sst2", "nyu-mll/glue"]}) == here
    assert here == {"model": str(tmp_path / "a" / "model"), "tasks": ["sst2", "nyu-mll/glue"]}
