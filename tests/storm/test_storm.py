"""The storm: kills at random moments, flipped bits in every file, eight writers at once; afterwards all is as without.

The counts are for `TOMBOLA_STORM=1`; `make test-storm` multiplies them. Every test prints what it did.
"""

import json
import os
import random
import shutil
import time

import pytest
import yaml

from tests.storm.weather import command, content, flip, kill_group, kill_worker, leftovers, wait
from tests.world import make_world
from tombola.attacks.report import AttackReport
from tombola.errors import DamagedArtefact, TombolaError
from tombola.results.result import Result
from tombola.store.garbage import damaged_roots
from tombola.store.store import Store
from tombola.tickets.multitask import MultiTaskTicket
from tombola.tickets.ticket import Ticket

pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("TOMBOLA_STORM", "1"))
SEED = int(os.environ.get("TOMBOLA_STORM_SEED", "0"))


def times(count):
    return max(1, round(count * SCALE))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, three tasks and recipes on disk, and everything imported that the commands need."""
    import transformers  # noqa: F401

    import tombola.pipeline.builder  # noqa: F401

    folder = tmp_path_factory.mktemp("storm")
    world = make_world(folder)
    train = {"epochs": 4, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16, "checkpoint_minutes": 0}
    recipe = world.recipe(
        train=train,
        seed=[1, 2],
        search={"method": "magnitude"},
        draw={"sparsity": 0.5},
        attack={"recipes": ["deepwordbug"], "n": 16},
    )
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    tasks = []
    for name in ("first", "second"):
        task = {**yaml.safe_load(world.task.read_text()), "name": name}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(task))
        tasks.append(str(folder / f"{name}.yaml"))
    shared = {
        "name": "shared",
        "model": str(world.model),
        "tasks": tasks,
        "precision": "fp32",
        "train": train,
        "single": {"epochs": 1},
        "search": {"method": "magnitude", "units": "head", "start": "finetuned"},
        "sparsity": 0.5,
    }
    (folder / "share.yaml").write_text(yaml.safe_dump(shared))
    return folder


def words(place, verb, at, *more):
    recipe = place / ("share.yaml" if verb == "share" else "recipe.yaml")
    return (verb, str(recipe), "--output", str(at / "out"), "--store", str(at / "store"), "--quiet", *more)


def finish(*arguments):
    """Run a command undisturbed; the seconds that it took."""
    start, process = time.monotonic(), command(*arguments)
    process.join(600)
    assert process.exitcode == 0, arguments
    return time.monotonic() - start


@pytest.fixture(scope="module")
def undisturbed(place, tmp_path_factory):
    """What every command leaves when nothing happens to it, and how long it takes."""
    found = {}
    for verb in ("run", "share"):
        at = tmp_path_factory.mktemp(f"calm-{verb}")
        took = finish(*words(place, verb, at))
        found[verb] = (at, took)
    ticket = next((found["run"][0] / "out" / "tickets").iterdir())
    attack = ("attack", str(ticket), "--recipe", "deepwordbug", "-n", "24", "--output")
    at = tmp_path_factory.mktemp("calm-attack")
    took = finish(*attack, str(at / "out"))
    return {**found, "attack": (at, took), "attack command": attack}


def compare(at, calm):
    finish("store", "gc", "--days", "0", "--yes", "--store", str(at / "store"))
    assert leftovers(at) == []
    ours, theirs = content(at), content(calm)
    assert {name: ours.get(name) for name in theirs} == theirs
    assert ours.keys() == theirs.keys()


def told(what):
    print(json.dumps(what), flush=True)


@pytest.mark.parametrize(("verb", "count"), [("run", 8), ("share", 4)])
def test_kills_change_nothing(place, undisturbed, tmp_path, verb, count):
    rng, (calm, took) = random.Random(f"{SEED} {verb}"), undisturbed[verb]
    kills = rounds = 0
    while kills < times(count):
        at, rounds = tmp_path / str(rounds), rounds + 1
        while kills < times(count):
            process = command(*words(place, verb, at))
            wait(rng.uniform(0, took), process)
            if not kill_group(process):
                break
            kills += 1
        finish(*words(place, verb, at))
        compare(at, calm)
        shutil.rmtree(at)
    told({"storm": f"kills of {verb}", "kills": kills, "rounds": rounds})


def test_kills_of_an_attack_change_nothing(undisturbed, tmp_path):
    rng, (calm, took), attack = random.Random(f"{SEED}"), undisturbed["attack"], undisturbed["attack command"]
    kills = rounds = 0
    while kills < times(6):
        at, rounds = tmp_path / str(rounds) / "out", rounds + 1
        while kills < times(6):
            process = command(*attack, str(at))
            wait(rng.uniform(0, took), process)
            if not kill_group(process):
                break
            kills += 1
        finish(*attack, str(at))
        assert leftovers(at) == []
        ours, theirs = content(at), content(calm / "out")
        assert {name: one for name, one in ours.items() if "journal" not in name} == {
            name: one for name, one in theirs.items() if "journal" not in name
        }
    told({"storm": "kills of attack", "kills": kills, "rounds": rounds})


@pytest.mark.parametrize(
    ("engine", "mark", "count"),
    [(("--workers", "2"), "spawn_main", 3), (("--engine", "ray", "--workers", "2"), "ray::", 2)],
)
def test_killed_workers_change_nothing(place, tmp_path, engine, mark, count):
    if "ray" in engine:
        pytest.importorskip("ray")
    rng, calm = random.Random(f"{SEED} {mark}"), tmp_path / "calm"
    finish(*words(place, "study", calm, "--tickets"))  # one worker
    kills = rounds = 0
    while kills < times(count):
        at, rounds = tmp_path / str(rounds), rounds + 1
        process = command(*words(place, "study", at, "--tickets", *engine))
        here = 0
        while process.is_alive() and here < 2 and kills < times(count):
            wait(rng.uniform(3, 8), process)
            killed = kill_worker(process, mark, rng)
            here, kills = here + killed, kills + killed
        process.join(600)
        assert process.exitcode == 0
        compare(at, calm)
        assert rounds < 10 * times(count), "no worker was found to kill"
    told({"storm": f"killed workers, {' '.join(engine)}", "kills": kills, "rounds": rounds})


def test_kills_of_gc_lose_nothing_that_is_needed(place, undisturbed, tmp_path):
    rng, (calm, _) = random.Random(f"{SEED} gc"), undisturbed["run"]
    at, kills = tmp_path / "at", 0
    shutil.copytree(calm, at)
    finish(*words(place, "run", at))
    for number in range(times(8)):
        for loose in range(40):
            folder = at / "store" / "train" / f"{number:012x}{loose:012x}"
            folder.mkdir()
            (folder / "rest").write_bytes(b"x" * 1000)
        process = command("store", "gc", "--days", "0", "--yes", "--store", str(at / "store"))
        wait(rng.uniform(0, 0.3), process)
        kills += kill_group(process)
    finish(*words(place, "run", at))
    compare(at, calm)
    told({"storm": "kills of gc", "kills": kills})


def test_eight_writers_of_one_store_and_one_output(place, undisturbed, tmp_path):
    for _ in range(times(1)):
        shutil.rmtree(tmp_path / "at", ignore_errors=True)
        writers = [command(*words(place, "run", tmp_path / "at")) for _ in range(8)]
        for process in writers:
            process.join(900)
        assert [process.exitcode for process in writers] == [0] * 8
        compare(tmp_path / "at", undisturbed["run"][0])
    told({"storm": "writers", "writers": 8, "rounds": times(1)})


HARMLESS = ("README.md", "report.html")
"""Files that people read and no command does."""


def notice(root, path):
    """Read what a file belongs to, as commands do; the message about it, if there is one."""
    parts = path.relative_to(root).parts
    store = Store(root / "store")
    try:
        if parts[0] == "store" and parts[1] == "roots":
            return " ".join(damaged_roots(store))
        if parts[0] == "store":
            store.open("/".join(parts[1:3]))
        elif parts[1] in ("tickets", "models"):
            folder = root.joinpath(*parts[:3])
            (MultiTaskTicket if (folder / "share.json").exists() else Ticket).from_pretrained(folder)
        elif path.name == "results.json":
            Result.load(root / "out")
        elif path.name not in HARMLESS:
            AttackReport.load(path.parent)
    except DamagedArtefact as error:
        return str(error)
    except TombolaError as error:
        return str(error)
    return ""


def test_flipped_bits_are_named(undisturbed, tmp_path):
    rng, flips, harmless = random.Random(f"{SEED} bits"), 0, 0
    kinds = set()
    for verb in ("run", "share", "attack"):
        root = tmp_path / verb
        shutil.copytree(undisturbed[verb][0], root)
        files = [
            path
            for path in sorted(root.rglob("*"))
            if path.is_file()
            and path.stat().st_size
            and path.suffix != ".lock"
            and "journal" not in path.name
        ]
        for _ in range(times(120)):
            path = rng.choice(files)
            whole = flip(path, rng)
            message = notice(root, path)
            path.write_bytes(whole)
            if path.name in HARMLESS:
                harmless += 1
                assert not message
            else:
                assert message, path
                assert path.name in message, (path, message)
            assert not notice(root, path)
            flips, kinds = flips + 1, kinds | {path.name}
    told({"storm": "flipped bits", "flips": flips, "harmless": harmless, "names of files": len(kinds)})
