"""Kills at random moments of a command's whole life; afterwards everything is as without them.

The counts are for `TOMBOLA_STORM=1`; `make test-storm` multiplies them. Every round prints what it did.
"""

import json
import os
import random
import shutil
import time
from dataclasses import replace

import pytest

from tests.storm.weather import Ledger, command, kill_first, kill_group, kill_worker, wait

pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("TOMBOLA_STORM", "1"))
SEED = int(os.environ.get("TOMBOLA_STORM_SEED", "0"))
DEAR = ("export", "measure")
"""Stages that take most of a compression: in most rounds they are finished when the storm begins."""
OFTEN = 12
"""Kills of one round, at most."""


RETRIES = 2
"""Of a stage whose worker died: a third kill of the same stage makes it fail, as the engine says."""


def times(count):
    return max(1, round(count * SCALE))


def rounds(storm, count):
    """The rounds that a storm still needs: for each its number, its chance, the kills that are missing."""
    ledger = Ledger()
    done, number = ledger.done(storm)
    while done < times(count):
        yield ledger, number, random.Random(f"{SEED} {storm} {number}"), times(count) - done
        before, (done, number) = done, ledger.done(storm)
        assert done > before or number % 10, "ten rounds without a kill"


def kill_once(words, calm, at, rng, before=0):
    """Start a command and kill it: after a while, or when it is about to change a file; false if it came to its end.

    The more kills there were before, the less is left to do, and the earlier the next one comes.
    """
    by_change, share = rng.random() < 0.5, rng.random() ** (1 + before)
    process = command(*words, at=at, die_at=1 + int(share * calm.changes) if by_change else None)
    wait(600 if by_change else share * calm.seconds, process)
    return kill_group(process), by_change


def half_finished(place, calm, name, rng, share):
    """A folder as a compression leaves it that was stopped before: a share of its dear stages is there."""
    at = place.folder(name)
    for stage in (calm.at / "store").glob("*/*/"):
        if stage.parent.name in DEAR and rng.random() < share:
            shutil.copytree(stage, at / "store" / stage.parent.name / stage.name)
    return at


def without_dear_stages(place, calm):
    """The command with the moments of its life for which it works on other stages."""
    at, tally = place.root / "measured-compress", place.root / "tally.json"
    half_finished(place, calm, at.name, random.Random(SEED), 1.0)
    seconds = place.finish(*calm.words, at=at, tally=tally)
    return replace(calm, seconds=seconds, changes=json.loads(tally.read_text())["changes"])


@pytest.mark.parametrize(("verb", "count"), [("run", 8), ("attack", 7), ("share", 1.5), ("compress", 0.5)])
def test_kills_change_nothing(place, undisturbed, verb, count):
    calm = undisturbed(verb)
    if verb == "compress":
        calm = without_dear_stages(place, calm)
    for ledger, number, rng, missing in rounds(verb, count):
        name = f"{verb}-{number}"
        at = half_finished(place, calm, name, rng, 0.9) if verb == "compress" else place.folder(name)
        kills, by_change = 0, 0
        while kills < min(missing, OFTEN):
            killed, changing = kill_once(calm.words, calm, at, rng, kills)
            if not killed:
                break
            kills, by_change = kills + 1, by_change + changing
        place.finish(*calm.words, at=at)
        place.compare(at, calm.at)
        shutil.rmtree(at)
        ledger.add(verb, kills, before_a_change=by_change, round=number)


ENGINES = {"pool": ("--workers", "2"), "ray": ("--engine", "ray", "--workers", "2")}


@pytest.fixture(scope="module")
def studied(place):
    """The study with one worker, and for each engine how long it takes with that."""
    calm, seconds = place.calm("study"), {}

    def find(engine):
        if engine not in seconds:
            at = place.folder(f"calm-{engine}")
            seconds[engine] = place.finish(*calm.words, *ENGINES[engine], at=at)
            place.compare(at, calm.at)
        return calm, seconds[engine]

    return find


def busy(at):
    return any((at / "store").glob("*/*.partial"))


@pytest.mark.parametrize(("engine", "mark", "count"), [("pool", "spawn_main", 0.2), ("ray", "ray::", 0.1)])
def test_killed_workers_change_nothing(place, studied, engine, mark, count):
    if engine == "ray":
        pytest.importorskip("ray")
    calm, seconds = studied(engine)
    for ledger, number, rng, missing in rounds(f"workers, {engine}", count):
        at, kills = place.folder(f"{engine}-{number}"), 0
        process = command(*calm.words, *ENGINES[engine], at=at)
        while process.is_alive() and kills < min(missing, RETRIES):
            if rng.random() < 0.7:  # while one has a stage: else it may still be loading
                end = time.monotonic() + 120
                while process.is_alive() and not busy(at) and time.monotonic() < end:
                    time.sleep(0.01)
            wait(rng.uniform(0, seconds / 8), process)
            kills += kill_worker(process, mark, rng)
        process.join(1200)
        assert process.exitcode == 0
        place.compare(at, calm.at)
        shutil.rmtree(at)
        ledger.add(f"workers, {engine}", kills, round=number)


@pytest.mark.parametrize(("engine", "count"), [("pool", 0.2), ("ray", 0.1)])
def test_killed_studies_go_on(place, studied, engine, count):
    """The first process is killed alone, or with all its workers; the same command goes on."""
    if engine == "ray":
        pytest.importorskip("ray")
    calm, seconds = studied(engine)
    for ledger, number, rng, missing in rounds(f"study, {engine}", count):
        at, kills, alone = place.folder(f"{engine}-first-{number}"), 0, 0
        while kills < min(missing, 3):
            process = command(*calm.words, *ENGINES[engine], at=at)
            wait(rng.uniform(0, seconds), process)
            only = rng.random() < 0.5
            if not (kill_first if only else kill_group)(process):
                break
            kills, alone = kills + 1, alone + only
        place.finish(*calm.words, *ENGINES[engine], at=at)
        place.compare(at, calm.at)
        shutil.rmtree(at)
        ledger.add(f"study, {engine}", kills, first_process_alone=alone, round=number)


def test_kills_of_gc_lose_nothing_that_is_needed(place, undisturbed):
    calm, tally = undisturbed("run"), place.root / "gc.json"
    words = ("store", "gc", "--days", "0", "--yes", "--store", "store")

    def litter(at, rng):
        for _ in range(8):
            folder = at / "store" / "train" / f"{rng.getrandbits(96):024x}"
            folder.mkdir()
            (folder / "rest").write_bytes(b"x" * 1000)

    for ledger, number, rng, missing in rounds("gc", 8):
        at, kills, by_change = place.root / f"gc-{number}", 0, 0
        shutil.copytree(calm.at, at)
        place.finish(*calm.words, at=at)  # writes its root
        litter(at, rng)
        seconds = place.finish(*words, at=at, tally=tally)
        whole = replace(
            calm, words=words, at=at, seconds=seconds, changes=json.loads(tally.read_text())["changes"]
        )
        for _ in range(40):
            if kills >= min(missing, 20):
                break
            litter(at, rng)
            killed, changing = kill_once(words, whole, at, rng)
            kills, by_change = kills + killed, by_change + (killed and changing)
        place.finish(*words, at=at)
        place.finish(*calm.words, at=at)
        place.compare(at, calm.at)
        shutil.rmtree(at)
        ledger.add("gc", kills, before_a_change=by_change, round=number)
