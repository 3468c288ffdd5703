"""Stages are removed on request: those that one run alone needs, or one by its key."""

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.store.kinds import Write
from tombola.cli import app
from tombola.errors import TombolaError
from tombola.store.garbage import collect_garbage
from tombola.store.removing import find_removal, sizes_by_run
from tombola.store.roots import register_root, roots
from tombola.store.store import Store

START = Write(text="fine-tune")
FIRST = Write(text="first", before=(START,))
SECOND = Write(text="second", before=(START,))
LOOSE = Write(text="nobody's")


@pytest.fixture
def store(tmp_path):
    """A store with two runs that share their first stage, and a stage of none."""
    store = Store(tmp_path / "store")
    for stage in (START, FIRST, SECOND, LOOSE):
        store.make(stage, lambda folder: (folder / "x").write_text("content"))
    for name, stage in (("first", FIRST), ("second", SECOND)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text("{}")
        register_root(store, tmp_path / name / "results.json", stage.with_inputs(), finished=True)
    return store


def test_a_run_takes_along_what_it_alone_needs(store, tmp_path):
    removal = find_removal(store, str(tmp_path / "first"))
    assert [item.name for item in removal.items] == [FIRST.name]
    assert removal.shared == 1
    removal.carry_out(store)
    assert not store.has(FIRST)
    assert store.has(START)
    assert [root.result.parent.name for root in roots(store)] == ["second"]
    last = find_removal(store, str(tmp_path / "second" / "results.json"))
    assert {item.name for item in last.items} == {START.name, SECOND.name}


def test_a_run_is_known_by_any_path(store, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(tmp_path / "first")
    monkeypatch.chdir(tmp_path / "second")
    register_root(store, Path("../link/results.json"), FIRST.with_inputs(), finished=True)
    assert len(roots(store)) == 2
    for what in ("../first", "../link/", "../link/results.json"):
        assert [item.name for item in find_removal(store, what).items] == [FIRST.name]
    assert find_removal(store, ".").run.result.parent.name == "second"


def test_a_stage_is_named_by_the_beginning_of_its_key(store, tmp_path):
    for what in (LOOSE.key[:8], f"{LOOSE.kind}/{LOOSE.key}"):
        assert [item.name for item in find_removal(store, what).items] == [LOOSE.name]
    assert find_removal(store, FIRST.key).needed_by == (tmp_path / "first" / "results.json",)
    find_removal(store, LOOSE.key).carry_out(store)
    assert not store.has(LOOSE)


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("zzzz", "'zzzz' is neither a run nor a stage"),
        (START.key[:3], "pass the folder of a run, or at least the first 4 characters"),
        (f"other/{START.key}", "is neither a run nor a stage"),
        ("{}", "is not a run that this store knows"),
    ],
)
def test_what_names_nothing_is_said(store, tmp_path, what, told):
    with pytest.raises(TombolaError, match=told):
        find_removal(store, what.format(tmp_path))


def test_a_run_at_work_is_left_alone(store, tmp_path):
    register_root(store, tmp_path / "first" / "results.json", FIRST.with_inputs(), finished=False)
    for what in (str(tmp_path / "first"), FIRST.key, START.key):
        with pytest.raises(TombolaError, match="is running"):
            find_removal(store, what)


def test_a_run_that_starts_before_the_deletion_keeps_its_stages(store, tmp_path):
    removal = find_removal(store, str(tmp_path / "first"))
    register_root(store, tmp_path / "third" / "results.json", FIRST.with_inputs(), finished=False)
    assert removal.carry_out(store) == []
    register_root(store, tmp_path / "first" / "results.json", FIRST.with_inputs(), finished=False)
    assert removal.carry_out(store) == []
    assert store.has(FIRST)
    assert "first" in [root.result.parent.name for root in roots(store)]


def test_nothing_of_a_run_goes_while_a_root_is_damaged(store, tmp_path):
    """The unreadable run may share the stages."""
    (root,) = (root for root in roots(store) if root.result.parent.name == "second")
    root.file.write_text("{")
    with pytest.raises(TombolaError, match=r"cannot determine which stages other runs need: .* delete it"):
        find_removal(store, str(tmp_path / "first"))


def test_a_whole_key_names_the_stage_and_not_what_was_set_aside(store):
    store.path(LOOSE).with_name(f"{LOOSE.key}.aside-01234567").mkdir()
    assert [item.name for item in find_removal(store, LOOSE.name).items] == [LOOSE.name]
    assert [item.name for item in find_removal(store, LOOSE.key).items] == [LOOSE.name]
    assert find_removal(store, f"{LOOSE.key}.a").items[0].label == "set aside"
    with pytest.raises(TombolaError, match="matches 2 stages"):
        find_removal(store, LOOSE.key[:10])


def test_room_by_run(store, tmp_path):
    sizes = {run.result.parent.name if run.result else None: run for run in sizes_by_run(store)}
    assert {name: run.stages for name, run in sizes.items()} == {"first": 2, "second": 2, None: 1}
    assert 0 < sizes["first"].alone < sizes["first"].bytes
    assert sizes[None].alone == sizes[None].bytes


def test_the_command_shows_first_and_deletes_when_told(store, tmp_path):
    def call(*words):
        return CliRunner().invoke(app, ["store", *words, "--store", str(store.root)], env={"COLUMNS": "200"})

    assert "no run (tombola store gc)" in call("du").output
    shown = call("rm", str(tmp_path / "first"))
    assert FIRST.key in shown.output
    assert "1 stage stays: other runs need it" in shown.output
    assert "would be deleted; add --yes to delete them" in shown.output
    assert store.has(FIRST)
    assert "deleted" in call("rm", str(tmp_path / "first"), LOOSE.key[:10], "--yes").output
    assert not store.has(FIRST)
    assert not store.has(LOOSE)


def test_names_of_stages_are_listed_whole_to_be_copied(store, monkeypatch):
    long = Write(text="a stage with a description that fills the line of a terminal and goes on")
    store.make(long, lambda folder: (folder / "x").write_text("content"))
    monkeypatch.setattr("tombola.cli.console.out", Console(width=80))
    done = CliRunner().invoke(app, ["store", "ls", "--store", str(store.root)], catch_exceptions=False)
    assert all(stage.name in done.output for stage in (START, long))


def test_unfinished_work_belongs_to_the_run_that_needs_it(store, tmp_path):
    """Garbage collection leaves it, so it must not be shown as that of no run; and it goes with its run."""
    half = Write(text="half", before=(START,))
    with pytest.raises(ValueError, match="killed"):
        store.make(half, _die)
    register_root(store, tmp_path / "first" / "results.json", [START, FIRST, half], finished=True)
    sizes = {run.result.parent.name if run.result else None: run.stages for run in sizes_by_run(store)}
    assert sizes == {"first": 3, "second": 2, None: 1}
    listed = (
        CliRunner().invoke(app, ["store", "ls", "--store", str(store.root)], env={"COLUMNS": "200"}).output
    )
    (line,) = (line for line in listed.splitlines() if half.key in line)
    assert line.split("│")[-2].strip() == "1"
    assert [item.name for item in collect_garbage(store, days=0)] == [LOOSE.name]
    removal = find_removal(store, str(tmp_path / "first"))
    assert {item.stage for item in removal.carry_out(store)} == {FIRST.name, half.name}
    assert not store.path(half).with_name(f"{half.key}.partial").exists()


def _die(folder):
    raise ValueError("killed")
