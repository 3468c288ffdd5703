"""The store names stages by what made them, and never shows what is not whole."""

import json
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from safetensors import SafetensorError

from tests.store.kinds import Write
from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.settings import Settings
from tombola.store.stage import WORK, Reference, Stage, Workspace, stages
from tombola.store.store import Store


def write(text):
    return lambda folder: (folder / "result.txt").write_text(text)


def stage(a: int = 1) -> Write:
    return Write(text=str(a))


@dataclass(frozen=True)
class Data(Reference):
    fingerprint: str
    folder: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit(Stage[None]):
    kind: ClassVar = "test_fit"
    version: ClassVar = 1
    data: Data
    rate: float
    start: Stage[Any] | None = None
    mask: Stage[Any] | None = None
    more: bool = False
    others: tuple[Stage[Any] | None, ...] = ()

    @property
    def label(self) -> str:
        return "fit"

    def run(self, space: Workspace) -> None: ...

    def read(self, folder: Path) -> None: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Refit(Fit):
    kind: ClassVar = "test_refit"


@dataclass(frozen=True, eq=False, kw_only=True)
class NewerFit(Fit):
    version: ClassVar = 2


def test_equal_stages_have_equal_keys_and_everything_that_matters_changes_them():
    base = Fit(data=Data("f1", "x"), rate=1, start=stage(1))
    assert base.key == Fit(data=Data("f1", "y"), rate=1, start=stage(1), more=False).key
    others = [
        Refit(data=Data("f1"), rate=1, start=stage(1)),
        NewerFit(data=Data("f1"), rate=1, start=stage(1)),
        Fit(data=Data("f1"), rate=2, start=stage(1)),
        Fit(data=Data("f1"), rate=1, start=stage(2)),
        Fit(data=Data("f1"), rate=1, mask=stage(1)),
        Fit(data=Data("f2"), rate=1, start=stage(1)),
        Fit(data=Data("f1"), rate=1, start=stage(1), more=True),
        Fit(data=Data("f1"), rate=1, start=stage(1), others=(stage(1), None)),
        Fit(data=Data("f1"), rate=1, start=stage(1), others=(None, stage(1))),
    ]
    assert len({one.key for one in others} | {base.key}) == len(others) + 1
    assert list(others[-1].inputs) == ["start", "others.1"]


def test_a_kind_of_stage_is_registered_once():
    assert stages["test_fit"] is Fit
    with pytest.raises(TombolaError, match="'test_fit' already exists"):
        type("Again", (Fit,), {"kind": "test_fit"})


def test_a_default_added_later_renames_nothing():
    class Old(Settings):
        rate: float = 0.1

    class New(Old):
        extra: bool = False

    assert Old(rate=0.2).canonical() == New(rate=0.2).canonical() == {"rate": 0.2}
    assert New(extra=True).canonical() == {"extra": True}


def test_a_finished_stage_is_not_run_again(tmp_path):
    store, one = Store(tmp_path), stage(1)
    assert store.make(one, write("first"))
    assert not store.make(one, write("second"))
    assert (store.open(one) / "result.txt").read_text() == "first"


def test_a_failed_stage_leaves_nothing_that_looks_finished(tmp_path):
    store, one = Store(tmp_path), stage(1)

    def fail(folder: Path) -> None:
        (folder / "result.txt").write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.make(one, fail)
    assert not store.has(one)
    store.make(one, write("whole"))
    assert (store.open(one) / "result.txt").read_text() == "whole"


def test_work_survives_a_failure_and_goes_when_the_stage_is_finished(tmp_path):
    store, one = Store(tmp_path), stage(1)

    def first(folder: Path) -> None:
        (folder / WORK).mkdir()
        (folder / WORK / "checkpoint").write_text("step 3")
        (folder / "rubbish").write_text("half")
        raise ValueError

    def second(folder: Path) -> None:
        assert (folder / WORK / "checkpoint").read_text() == "step 3"
        assert not (folder / "rubbish").exists()
        (folder / "result.txt").write_text("done")

    with pytest.raises(ValueError):  # noqa: PT011
        store.make(one, first)
    store.make(one, second)
    assert sorted(path.name for path in store.open(one).iterdir()) == ["manifest.json", "result.txt"]


@pytest.mark.parametrize("damage", ["content", "size", "missing", "manifest"])
def test_a_damaged_artefact_is_detected_and_named(tmp_path, damage):
    store, one = Store(tmp_path), stage(1)
    store.make(one, write("abcd"))
    file = store.path(one) / ("manifest.json" if damage == "manifest" else "result.txt")
    if damage == "missing":
        file.unlink()
    else:
        file.write_text({"content": "abcx", "size": "abc", "manifest": "{"}[damage])
    with pytest.raises(DamagedArtefact, match=file.name):
        store.open(one)


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device", "model.safetensors"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_one_sentence(tmp_path, error):
    def full(folder: Path) -> None:
        (folder / "model.safetensors").write_text("half")
        raise error

    store = Store(tmp_path)
    with pytest.raises(TombolaError, match=r"No space left on device .*the same command to resume"):
        store.make(stage(1), full)
    assert not store.has(stage(1))


def test_a_stage_with_its_inputs_lists_each_once_and_inputs_first():
    root = stage(1)
    left = Fit(data=Data("f"), rate=0.5, start=root)
    right = Fit(data=Data("f"), rate=0.7, start=stage(1), mask=left)
    assert [one.key for one in right.with_inputs()] == [one.key for one in (root, left, right)]


def _slow(root: str, log: str) -> None:
    def run(folder: Path) -> None:
        with open(log, "a") as file:
            file.write("ran\n")
        time.sleep(0.3)
        (folder / "result.txt").write_text("done")

    Store(root).make(stage(1), run)


def test_two_processes_that_want_one_stage_run_it_once(tmp_path):
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_slow, args=(str(tmp_path / "store"), str(tmp_path / "log"))) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (tmp_path / "log").read_text() == "ran\n"
    assert Store(tmp_path / "store").open(stage(1))


def test_a_killed_process_gives_up_its_lock(tmp_path):
    def hang(folder: Path) -> None:
        (folder / "half").write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)

    worker = multiprocessing.get_context("fork").Process(target=lambda: Store(tmp_path).make(stage(1), hang))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    store = Store(tmp_path)
    assert not store.has(stage(1))
    store.make(stage(1), write("done"))
    assert "half" not in json.loads((store.open(stage(1)) / "manifest.json").read_text())["files"]
