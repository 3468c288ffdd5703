"""A store at a URL: whole stages only, copied when needed, checked when copied."""

import json
import shutil
import time
from threading import Thread

import fsspec
import pytest

from tests.store.kinds import Write
from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.checksums import sealed
from tombola.store.garbage import collect_garbage, damaged, items
from tombola.store.store import Store

ONE = Write(text="1")


def write(text):
    def run(folder):
        (folder / "deep").mkdir()
        (folder / "deep" / "result.txt").write_text(text)

    return run


def beside(store):
    """The names in the folder of a stage's kind, except locks."""
    return [path.name for path in store.path(ONE).parent.iterdir() if path.suffix != ".lock"]


@pytest.fixture(params=["file", "memory"])
def machines(request, tmp_path, monkeypatch):
    """Opens the same store as another machine would, with a cache of its own."""
    url = f"file://{tmp_path}/far" if request.param == "file" else f"memory://{tmp_path.name}"

    def machine(name):
        monkeypatch.setenv("TOMBOLA_CACHE", str(tmp_path / name))
        return Store(url)

    return machine


def test_what_one_machine_made_another_reads(machines):
    here, there = machines("here"), machines("there")
    assert not there.has(ONE)
    assert here.make(ONE, write("made here"))
    assert there.has(ONE)
    assert there.finished([ONE, Write(text="2")]) == {ONE.key}
    assert there.seconds(ONE) >= 0
    assert not there.make(ONE, write("made twice"))
    assert (there.open(ONE) / "deep" / "result.txt").read_text() == "made here"
    assert there.open(ONE.name) == there.open(ONE)
    assert there.root != here.root
    assert Store(there.address).address == there.address


def test_the_first_of_two_machines_stands(machines):
    here, there = machines("here"), machines("there")
    there.make(ONE, lambda folder: (here.make(ONE, write("first")), write("second")(folder)))
    fresh = machines("fresh")
    assert (fresh.open(ONE) / "deep" / "result.txt").read_text() == "first"


def test_a_failed_upload_is_made_good_without_running_again(machines, monkeypatch):
    here, there = machines("here"), machines("there")

    def full(*args, **kwargs):
        raise OSError(28, "No space left")

    with monkeypatch.context() as patch:
        patch.setattr(type(here.remote.files), "put_file", full)
        with pytest.raises(TombolaError, match="try again"):
            here.make(ONE, write("once"))
    assert not there.has(ONE)
    assert not here.make(ONE, write("twice"))
    assert (there.open(ONE) / "deep" / "result.txt").read_text() == "once"


def test_damage_on_the_way_is_noticed(machines):
    here = machines("here")
    here.make(ONE, write("whole"))
    files = here.remote.files
    (path,) = [name for name in files.find(here.remote.root) if name.endswith("result.txt")]
    files.pipe_file(path, b"holed")
    there = machines("there")
    with pytest.raises(DamagedArtefact, match=r"result\.txt"):
        there.open(ONE)
    assert beside(there) == []


def test_a_place_that_fsspec_does_not_know_is_one_sentence():
    assert "nowhere" not in fsspec.available_protocols()
    with pytest.raises(TombolaError, match="cannot be reached"):
        Store("nowhere://x")


def rewrite(store, change):
    """Change the manifest of the stage that is far away."""
    files = store.remote.files
    (path,) = [name for name in files.find(store.remote.root) if name.endswith("manifest.json")]
    content = json.loads(files.cat_file(path))
    del content["checksum"]
    change(content)
    files.pipe_file(path, sealed(content).encode())


@pytest.mark.parametrize(
    "name", ["../../escaped", "/tmp/escaped", "a/../../../escaped", "..\\escaped", "", "."]
)
def test_a_manifest_from_outside_writes_nothing_outside_its_stage(machines, tmp_path, name):
    here = machines("here")
    here.make(ONE, write("whole"))
    rewrite(here, lambda manifest: manifest["files"].update({name: {"size": 1, "blake2b": "0"}}))
    there = machines("there")
    before = {path for path in tmp_path.rglob("*") if "there" not in path.parts}
    with pytest.raises(DamagedArtefact, match=r"is damaged there .*manifest\.json cannot be read.*; delete"):
        there.open(ONE)
    assert {path for path in tmp_path.rglob("*") if "there" not in path.parts} == before
    assert beside(there) == []


@pytest.mark.parametrize("at", ["../../elsewhere", "", None, {"deep": []}])
def test_a_pointer_from_outside_leads_nowhere_else(machines, at):
    here = machines("here")
    here.make(ONE, write("whole"))
    here.remote.files.pipe_file(here.remote._pointer(ONE.name), json.dumps({"at": at}).encode())
    with pytest.raises(DamagedArtefact, match="does not point to a stage; delete"):
        machines("there").open(ONE)
    with pytest.raises(DamagedArtefact, match="does not point"):
        machines("third").seconds(ONE)


def test_uploads_that_nothing_points_to_and_missing_files_are_found(machines):
    here = machines("here")
    here.make(ONE, write("whole"))
    assert list(here.remote.orphans()) == []
    assert [reason for _, reason in here.remote.damaged()] == [None]
    left = f"{here.remote.root}/{ONE.name}/{'0' * 32}/text"
    here.remote.files.makedirs(left.rpartition("/")[0], exist_ok=True)
    here.remote.files.pipe_file(left, b"half")
    assert list(here.remote.orphans()) == [f"{here.remote.url}/{ONE.name}/{'0' * 32}"]
    (path,) = [name for name in here.remote.files.find(here.remote.root) if name.endswith("result.txt")]
    here.remote.files.rm(path)
    ((name, reason),) = here.remote.damaged()
    assert (name, "result.txt is missing" in reason) == (ONE.name, True)


def test_the_faster_of_two_downloads_stands(machines, monkeypatch):
    machines("here").make(ONE, write("whole"))
    there = machines("there")
    pulled = type(there.remote).pull
    rename = type(there.root).rename

    def late(partial, final):
        monkeypatch.undo()
        pulled(there.remote, ONE.name, there.path(ONE))  # by another process, in the last moment
        return rename(partial, final)

    monkeypatch.setattr(type(there.root), "rename", late)
    assert (there.open(ONE) / "deep" / "result.txt").read_text() == "whole"
    assert beside(there) == [ONE.key]


def test_two_processes_that_need_a_stage_download_it_once_and_garbage_collection_waits(machines, monkeypatch):
    machines("here").make(ONE, write("whole"))
    first, second = machines("there"), machines("there")
    pull, downloads, collected = type(first.remote).pull, [], []

    def slowly(remote, name, final):
        downloads.append(name)
        other = Thread(target=lambda: collected.append(second.open(ONE)))
        if len(downloads) == 1:
            other.start()
            threads.append(other)
            time.sleep(0.3)
            assert collect_garbage(second, days=-1) == []
        pull(remote, name, final)

    threads: list[Thread] = []
    monkeypatch.setattr(type(first.remote), "pull", slowly)
    folder = first.open(ONE)
    threads[0].join()
    assert (downloads, collected) == ([ONE.name], [folder])


def test_what_is_left_of_a_copy_is_set_aside_for_a_download(machines):
    machines("here").make(ONE, write("whole"))
    there = machines("there")
    there.path(ONE).mkdir(parents=True)
    (there.path(ONE) / "rest").write_text("of a copy that was cut short")
    assert (there.open(ONE) / "deep" / "result.txt").read_text() == "whole"


def test_a_stage_that_was_damaged_before_its_upload_is_not_uploaded(machines, monkeypatch):
    here = machines("here")
    with monkeypatch.context() as patch:
        patch.setattr(type(here.remote), "push", lambda *_: None)
        here.make(ONE, write("whole"))
    (here.path(ONE) / "deep" / "result.txt").write_text("holed")
    with pytest.raises(DamagedArtefact, match="was damaged after it was written; delete"):
        here.make(ONE, write("whole"))
    assert not here.has(ONE)


ASKING = {
    "exists": lambda here, there: there.has(ONE),
    "glob": lambda here, there: there.finished([ONE]),
    "cat_file": lambda here, there: list(there.remote.orphans()),
    "put_file": lambda here, there: here.make(Write(text="2"), write("2")),
    "get_file": lambda here, there: there.open(ONE),
}
"""What asks a location, by the method of its file system."""


class _Refused(Exception):
    """An error of a library that Tombola does not know."""


@pytest.mark.parametrize("method", ASKING)
def test_an_error_of_the_locations_own_is_one_sentence_and_costs_no_stage(machines, monkeypatch, method):
    """S3 without credentials or without a connection raises neither an OSError nor anything else of Python's."""
    here, there = machines("here"), machines("there")
    here.make(ONE, write("whole"))

    def refuse(*_, **__):
        raise _Refused("Unable to locate credentials\nand more")

    with monkeypatch.context() as patch:
        patch.setattr(type(here.remote.files), method, refuse)
        with pytest.raises(TombolaError, match=r": Unable to locate credentials") as caught:
            ASKING[method](here, there)
        assert "delete" not in str(caught.value)
    assert (there.open(ONE) / "deep" / "result.txt").read_text() == "whole"


def test_a_stage_that_cannot_be_listed_does_not_hide_the_others(machines, monkeypatch):
    here = machines("here")
    here.make(ONE, write("whole"))

    def refuse(*_, **__):
        raise PermissionError("Forbidden")

    monkeypatch.setattr(type(here.remote), "names", lambda _: {ONE.name})
    monkeypatch.setattr(type(here.remote.files), "find", refuse)
    ((_, reason),) = here.remote.damaged()
    assert "could not be read: Forbidden" in reason


def test_a_download_that_was_cut_short_is_not_called_damaged(machines):
    here = machines("here")
    here.make(ONE, write("whole"))
    left = here.path(ONE).with_name(f"{ONE.key}.{'0' * 32}.fetch")
    left.mkdir()
    shutil.copyfile(here.path(ONE) / "manifest.json", left / "manifest.json")
    assert {item.label for item in items(here)} == {ONE.label, "unfinished"}
    assert [reason for _, reason in damaged(here)] == [None]
