"""The store can be listed, checked and cleaned, and cleaning spares what a result stands on."""

import os
import time

import pytest
from typer.testing import CliRunner

from tests.store.kinds import Write
from tombola.cli import app
from tombola.store.garbage import DAY, collect_garbage, damaged, garbage, items, register_root, roots
from tombola.store.store import LOGS, Store

START = Write(text="fine-tune")
END = Write(text="evaluate", before=(START,))
LOOSE = Write(text="nobody's")


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    for stage in (START, END, LOOSE):
        store.make(stage, lambda folder: (folder / "x").write_text("content"))
    (store.root / LOGS).mkdir()
    (store.root / LOGS / "train-x.log").write_text("said")
    for stage in (START, END, LOOSE):
        os.utime(store.path(stage), (0, 0))
    return store


@pytest.fixture
def result(store, tmp_path):
    path = tmp_path / "runs" / "results.json"
    path.parent.mkdir()
    path.write_text("{}")
    register_root(store, path, END.with_inputs(), finished=True)
    return path


def names(found):
    return {item.name for item in found}


def test_what_a_result_stands_on_is_spared(store, result):
    assert names(garbage(store)) == {LOOSE.name}
    collect_garbage(store, garbage(store))
    assert store.open(START)
    assert store.open(END)
    assert not store.has(LOOSE)


def test_what_only_a_deleted_result_stood_on_goes_and_is_forgotten(store, result):
    result.unlink()
    assert names(collect_garbage(store, garbage(store))) == {START.name, END.name, LOOSE.name}
    assert roots(store) == []


def test_a_run_that_has_not_ended_is_spared(store, tmp_path):
    register_root(store, tmp_path / "later" / "results.json", END.with_inputs(), finished=False)
    assert names(garbage(store)) == {LOOSE.name}
    (file,) = (root.file for root in roots(store))
    os.utime(file, (time.time() - 8 * DAY,) * 2)
    assert names(garbage(store)) == {START.name, END.name, LOOSE.name}


def test_what_two_results_share_goes_with_the_last(store, result, tmp_path):
    other = tmp_path / "other" / "results.json"
    register_root(store, other, [START], finished=True)
    other.parent.mkdir()
    other.write_text("{}")
    result.unlink()
    assert names(garbage(store)) == {END.name, LOOSE.name}


def test_what_is_young_or_in_work_is_left_alone(store):
    os.utime(store.path(LOOSE))
    assert LOOSE.name not in names(garbage(store))
    from filelock import FileLock

    with FileLock(store.path(START).with_name(f"{START.key}.lock")):
        assert names(collect_garbage(store, garbage(store))) == {END.name}


def test_unfinished_work_of_a_lost_run_goes(store):
    with pytest.raises(ValueError, match="killed"):
        store.make(Write(text="3"), _die)
    (partial,) = (item for item in items(store) if not item.finished)
    os.utime(partial.folder, (0, 0))
    assert partial.name in names(garbage(store))
    collect_garbage(store, [partial])
    assert not partial.folder.exists()


def _die(folder):
    raise ValueError("killed")


def test_damage_is_named(store):
    (store.path(START) / "x").write_text("damaged")
    assert {item.name: bool(reason) for item, reason in damaged(store)} == {
        START.name: True,
        END.name: False,
        LOOSE.name: False,
    }


def test_the_command_shows_first_and_deletes_when_told(store, result):
    def call(*words):
        return CliRunner().invoke(app, ["store", *words, "--store", str(store.root)], env={"COLUMNS": "200"})

    assert "nobody's" in call("ls").output
    assert str(result) in call("ls").output
    assert f"{sum(item.bytes for item in items(store))} B" in call("du").output
    assert call("verify").exit_code == 0
    shown = call("gc")
    assert LOOSE.key in shown.output
    assert "add --yes" in shown.output
    assert store.has(LOOSE)
    call("gc", "--yes")
    assert not store.has(LOOSE)
    assert store.has(START)
    (store.path(START) / "x").write_text("damaged")
    broken = call("verify")
    assert broken.exit_code == 1
    assert "damaged" in broken.output
