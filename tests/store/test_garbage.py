"""The store can be listed, checked and cleaned, and cleaning spares what a result needs."""

import errno
import json
import os
import time

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from tests.store.kinds import Write
from tombola.cli import app
from tombola.errors import DamagedArtefact
from tombola.foundations.checksums import sealed
from tombola.pipeline.engines import Local
from tombola.pipeline.watching import Watcher
from tombola.store.garbage import collect_garbage, damaged, garbage, items
from tombola.store.roots import LEASE, MISSING, register_root, roots, running
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
    (store.root / LOGS / f"test_write-{START.key}.log").write_text("said")
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


def test_what_a_result_needs_is_spared(store, result):
    assert names(garbage(store)) == {LOOSE.name}
    collect_garbage(store)
    assert store.open(START)
    assert store.open(END)
    assert not store.has(LOOSE)


def age(store, seconds):
    """Let every root have been seen, and every folder been used, so long ago."""
    (file,) = (store.root / "roots").glob("*.json")
    record = json.loads(file.read_text())
    del record["checksum"]
    file.write_text(sealed({**record, "seen": record["seen"] - seconds}))
    os.utime(file, (time.time() - seconds,) * 2)


def test_a_result_that_was_moved_keeps_its_stages_for_a_while(store, result):
    result.unlink()
    assert names(garbage(store)) == {LOOSE.name}
    age(store, MISSING + 1)
    assert names(collect_garbage(store)) == {START.name, END.name, LOOSE.name}
    assert roots(store) == []


def test_a_run_is_spared_as_long_as_it_is_at_work(store, tmp_path):
    with running(store, tmp_path / "later" / "results.json", END.with_inputs()):
        assert names(garbage(store)) == {LOOSE.name}
    age(store, LEASE + 1)
    assert names(garbage(store)) == {START.name, END.name, LOOSE.name}


def test_a_running_process_renews_its_root(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tombola.store.roots.RENEWAL", 0.01)
    with running(store, tmp_path / "later" / "results.json", END.with_inputs()):
        age(store, LEASE + 1)
        deadline = time.monotonic() + 10
        while not roots(store)[0].alive:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_paused_run_is_spared(store, tmp_path):
    """A laptop that slept, or a stopped process: nothing was renewed, but the run goes on."""
    with running(store, tmp_path / "later" / "results.json", END.with_inputs()):
        age(store, LEASE + 1)
        assert names(collect_garbage(store)) == {LOOSE.name}
    age(store, LEASE + 1)
    assert names(collect_garbage(store)) == {START.name, END.name}
    assert list((store.root / "roots").iterdir()) == []


def test_a_killed_run_is_not_spared_for_its_lock(store, tmp_path):
    with running(store, tmp_path / "later" / "results.json", END.with_inputs()):
        (lock,) = (store.root / "roots").glob("*.lock")
    lock.touch()
    age(store, LEASE + 1)
    assert names(collect_garbage(store)) == {START.name, END.name, LOOSE.name}
    assert not lock.exists()


def test_a_root_that_was_deleted_while_its_run_was_paused_comes_back(store, tmp_path, monkeypatch):
    monkeypatch.setattr("tombola.store.roots.RENEWAL", 0.01)
    with running(store, tmp_path / "later" / "results.json", END.with_inputs()):
        next((store.root / "roots").glob("*.json")).unlink()
        deadline = time.monotonic() + 10
        while not roots(store):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert roots(store)[0].stages == {START.name, END.name}


def test_a_run_that_never_ends_does_not_cost_the_result_in_its_folder_its_stages(store, result):
    other = Write(text="another recipe")
    with running(store, result, [other]):
        pass  # killed
    age(store, LEASE + 1)
    assert names(garbage(store)) == {LOOSE.name}
    register_root(store, result, [other], finished=True)
    assert names(garbage(store)) == {START.name, END.name, LOOSE.name}


def test_what_was_used_lately_is_spared(store):
    store.open(LOOSE)
    assert LOOSE.name not in names(garbage(store))


def test_what_two_results_share_goes_with_the_last(store, result, tmp_path):
    other = tmp_path / "other" / "results.json"
    result.unlink()
    age(store, MISSING + 1)
    register_root(store, other, [START], finished=True)
    other.parent.mkdir()
    other.write_text("{}")
    assert names(garbage(store)) == {END.name, LOOSE.name}


def test_what_is_young_or_in_work_is_left_alone(store):
    os.utime(store.path(LOOSE))
    assert LOOSE.name not in names(garbage(store))
    with FileLock(store.path(START).with_name(f"{START.key}.lock")):
        assert names(collect_garbage(store)) == {END.name}


def test_unfinished_work_of_a_lost_run_goes(store):
    with pytest.raises(ValueError, match="killed"):
        store.make(Write(text="3"), _die)
    (partial,) = (item for item in items(store) if not item.finished)
    os.utime(partial.folder, (0, 0))
    assert partial.name in names(garbage(store))
    collect_garbage(store)
    assert not partial.folder.exists()


def _die(folder):
    raise ValueError("killed")


def test_a_folder_without_a_manifest_is_set_aside_named_and_removed(store, caplog):
    other = Write(text="other")
    store.path(other).mkdir()
    (store.path(other) / "rest").write_text("of a deletion that was cut short")
    assert [reason for item, reason in damaged(store) if item.name == other.name] != [None]
    assert store.make(other, lambda folder: (folder / "text").write_text("whole"))
    assert store.read(other) == "whole"
    assert "was moved to" in caplog.text
    (aside,) = (item for item in items(store) if item.label == "set aside")
    os.utime(aside.folder, (0, 0))
    collect_garbage(store)
    assert not aside.folder.exists()
    assert store.read(other) == "whole"


def test_one_damaged_file_does_not_stop_the_others_from_being_seen(store, result):
    (store.path(START) / "manifest.json").write_text("{")
    (store.root / "roots" / "broken.json").write_text("[]")
    assert {item.label for item in items(store)} == {"damaged", "evaluate", "nobody's"}
    assert len(roots(store)) == 1
    collect_garbage(store)
    assert store.has(LOOSE), "nobody knows whether the broken root needs it"
    listed = CliRunner().invoke(app, ["store", "verify", "--store", str(store.root)])
    assert (listed.exit_code, listed.output.count("broken.json")) == (1, 1)
    (store.root / "roots" / "broken.json").unlink()
    collect_garbage(store)
    assert not store.has(LOOSE)


@pytest.mark.parametrize("name", [".", "../x", "/x"])
def test_a_manifest_that_leads_elsewhere_is_named_and_the_others_are_checked(store, result, name):
    about = {"stage": {}, "label": "x", "made": {}, "files": {name: {"size": 1, "blake2b": ""}}}
    (store.path(START) / "manifest.json").write_text(json.dumps(about))
    found = {item.name: reason for item, reason in damaged(store)}
    assert "manifest.json cannot be read; delete" in str(found[START.name])
    assert found[END.name] is None


def test_every_bit_of_a_manifest_and_a_root_counts(store, result):
    manifest = store.path(END) / "manifest.json"
    (root,) = (store.root / "roots").glob("*.json")
    for file, look in ((manifest, lambda: store.open(END)), (root, lambda: next(iter(roots(store))))):
        whole = file.read_bytes()
        for place in range(0, len(whole), 7):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises((DamagedArtefact, StopIteration)):
                look()
        file.write_bytes(whole)
        look()


def test_locks_and_logs_that_nobody_needs_are_removed(store):
    for file in [*store.root.glob("*/*.lock"), *(store.root / LOGS).iterdir()]:
        os.utime(file, (0, 0))
    collect_garbage(store)
    assert not [*store.root.glob("*/*.lock"), *(store.root / LOGS).iterdir()]


def test_what_is_not_the_stores_own_is_left_alone(store):
    """A store may be a folder that holds other things too."""
    own = [
        store.root / name for name in ("data/glue/train.tsv", "code/poetry.lock", "logs/web.log", "trash/x/y")
    ]
    for file in own:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
        os.utime(file, (0, 0))
        os.utime(file.parent, (0, 0))
    assert LOOSE.name in names(collect_garbage(store))
    assert [file.read_text() for file in own] == ["mine"] * len(own)
    assert len(list((store.root / "trash").iterdir())) == 1


def test_a_finished_store_can_be_read_only(store, result, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tombola.store.roots._write", denied)
    monkeypatch.setattr(os, "utime", denied)
    register_root(store, result, END.with_inputs(), finished=True)
    assert not store.make(END, _die)
    assert store.open(END)


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
    assert f"{sum(item.bytes for item in items(store)) / 1000:.0f} kB" in call("du").output
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


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_store_that_cannot_be_written_serves_what_is_finished(store, result, monkeypatch, number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("tombola.store.roots.FileLock", refuse)
    monkeypatch.setattr("tombola.store.leases.FileLock", refuse)
    monkeypatch.setattr("tombola.store.store.FileLock", refuse)
    monkeypatch.setattr("os.utime", refuse)
    with running(store, result, END.with_inputs()):
        assert Local().run(END.with_inputs(), store, Watcher()).ran == []
        assert store.open(END)
    register_root(store, result, END.with_inputs(), finished=True)
