"""The store names stages by what made them, and never shows what is not whole."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from safetensors import SafetensorError

from tombola.errors import DamagedArtefact, TombolaError
from tombola.foundations.settings import Settings
from tombola.store.store import WORK, Ref, Stage, Store


def write(text):
    return lambda folder: (folder / "result.txt").write_text(text)


def stage(**settings):
    return Stage("train", 1, settings)


def test_equal_stages_have_equal_keys_and_everything_that_matters_changes_them():
    base = Stage("train", 1, {"lr": 1}, {"start": stage(a=1)}, {"data": Ref("f1", {"folder": "x"})})
    same = Stage(
        "train", 1, {"lr": 1}, {"start": stage(a=1)}, {"data": Ref("f1", {"folder": "y"})}, label="other"
    )
    assert base.key == same.key
    others = [
        Stage("draw", 1, {"lr": 1}, {"start": stage(a=1)}, {"data": Ref("f1")}),
        Stage("train", 2, {"lr": 1}, {"start": stage(a=1)}, {"data": Ref("f1")}),
        Stage("train", 1, {"lr": 2}, {"start": stage(a=1)}, {"data": Ref("f1")}),
        Stage("train", 1, {"lr": 1}, {"start": stage(a=2)}, {"data": Ref("f1")}),
        Stage("train", 1, {"lr": 1}, {"mask": stage(a=1)}, {"data": Ref("f1")}),
        Stage("train", 1, {"lr": 1}, {"start": stage(a=1)}, {"data": Ref("f2")}),
    ]
    assert len({one.key for one in others} | {base.key}) == len(others) + 1


def test_a_default_added_later_renames_nothing():
    class Old(Settings):
        rate: float = 0.1

    class New(Old):
        extra: bool = False

    assert Old(rate=0.2).canonical() == New(rate=0.2).canonical() == {"rate": 0.2}
    assert New(extra=True).canonical() == {"extra": True}


def test_a_finished_stage_is_not_run_again(tmp_path):
    store, one = Store(tmp_path), stage(a=1)
    assert store.make(one, write("first"))
    assert not store.make(one, write("second"))
    assert (store.open(one) / "result.txt").read_text() == "first"


def test_a_failed_stage_leaves_nothing_that_looks_finished(tmp_path):
    store, one = Store(tmp_path), stage(a=1)

    def fail(folder: Path) -> None:
        (folder / "result.txt").write_text("half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.make(one, fail)
    assert not store.has(one)
    store.make(one, write("whole"))
    assert (store.open(one) / "result.txt").read_text() == "whole"


def test_work_survives_a_failure_and_goes_when_the_stage_is_finished(tmp_path):
    store, one = Store(tmp_path), stage(a=1)

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
    store, one = Store(tmp_path), stage(a=1)
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
    with pytest.raises(TombolaError, match=r"No space left on device .*the same command goes on from here"):
        store.make(stage(a=1), full)
    assert not store.has(stage(a=1))


def test_the_road_lists_each_stage_once_and_inputs_first():
    root = stage(a=1)
    left = Stage("draw", 1, {"s": 0.5}, {"of": root})
    right = Stage("draw", 1, {"s": 0.7}, {"of": stage(a=1), "within": left})
    assert [one.kind for one in right.road()] == ["train", "draw", "draw"]


def _slow(root: str, log: str) -> None:
    def run(folder: Path) -> None:
        with open(log, "a") as file:
            file.write("ran\n")
        time.sleep(0.3)
        (folder / "result.txt").write_text("done")

    Store(root).make(stage(a=1), run)


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
    assert Store(tmp_path / "store").open(stage(a=1))


def test_a_killed_process_gives_up_its_lock(tmp_path):
    def hang(folder: Path) -> None:
        (folder / "half").write_text("x")
        os.kill(os.getpid(), signal.SIGKILL)

    worker = multiprocessing.get_context("fork").Process(
        target=lambda: Store(tmp_path).make(stage(a=1), hang)
    )
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    store = Store(tmp_path)
    assert not store.has(stage(a=1))
    store.make(stage(a=1), write("done"))
    assert "half" not in json.loads((store.open(stage(a=1)) / "manifest.json").read_text())["files"]
