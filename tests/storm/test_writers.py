"""Many processes with one store and one output, and garbage collection beside them: the same bytes come out."""

import os
import shutil
import time

import pytest

from tests.storm.weather import command

pytestmark = pytest.mark.slow

WRITERS = 8


def write_together(words, at):
    writers = [command(*words, at=at) for _ in range(WRITERS)]
    for process in writers:
        process.join(1200)
    return [process.exitcode for process in writers]


@pytest.mark.parametrize("verb", ["run", "attack"])
def test_eight_writers_of_one_store_and_one_output(place, undisturbed, verb):
    calm, at = undisturbed(verb), place.folder(f"eight-{verb}")
    assert write_together(calm.words, at) == [0] * WRITERS
    place.compare(at, calm.at)
    print({"storm": f"writers of {verb}", "writers": WRITERS}, flush=True)


def test_eight_compressions_write_one_model(place, undisturbed):
    calm, at = undisturbed("compress"), place.root / "eight-compress"
    shutil.copytree(calm.at, at)
    shutil.rmtree(at / "out")
    assert write_together(calm.words, at) == [0] * WRITERS
    place.compare(at, calm.at)
    print({"storm": "writers of compress", "writers": WRITERS}, flush=True)


def test_garbage_collection_beside_a_run_takes_nothing_from_it(place, undisturbed):
    calm, at, collected = undisturbed("run"), place.folder("beside"), 0
    process = command(*calm.words, at=at)
    while process.is_alive():
        if (at / "store").is_dir():
            place.finish("store", "gc", "--days", "0", "--yes", "--store", "store", at=at)
            collected += 1
        time.sleep(0.05)
    assert process.exitcode == 0
    assert collected > 2
    place.compare(at, calm.at)
    print({"storm": "gc beside a run", "collected": collected}, flush=True)


def test_a_finished_run_works_with_a_store_that_cannot_be_written(place, undisturbed):
    if os.geteuid() == 0:
        pytest.skip("the superuser writes in spite of the mode")
    calm, at = undisturbed("run"), place.root / "read-only"
    shutil.copytree(calm.at, at)
    for folder, _, _ in os.walk(at / "store"):
        os.chmod(folder, 0o500)
    try:
        place.finish(*calm.words, at=at)
    finally:
        for folder, _, _ in os.walk(at / "store"):
            os.chmod(folder, 0o700)
