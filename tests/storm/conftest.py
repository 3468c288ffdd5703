"""A small world for the storm, and what every command leaves in it when nothing happens to it."""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.storm.weather import command, content, leftovers, load_modules
from tests.world import make_world, sentences

TRAIN = {"epochs": 2, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16, "checkpoint_minutes": 0}
COMPRESS = (
    "precision=fp32",
    "train={epochs: 2, learning_rate: 3.0e-3, batch_size: 16, max_length: 16, checkpoint_minutes: 0}",
    *("retrain.epochs=1", "retrain.learning_rate=3.0e-3", "search.batches=1", "draw.multiple=1"),
    *("attack.n=4", "attack.recipes=[deepwordbug]", "measure.batch_sizes=[1]"),
)


@dataclass(frozen=True)
class Calm:
    """A command that nothing happened to.

    Attributes:
        words: The command.
        at: The folder that it ran in.
        seconds: How long it took.
        changes: How often it changed a file.
    """

    words: tuple[str, ...]
    at: Path
    seconds: float
    changes: int


@dataclass(frozen=True)
class Place:
    """The folder of the storm: a model, tasks, data and recipes."""

    root: Path

    def folder(self, name: str) -> Path:
        """A folder to run a command in: all are siblings, so that relative paths are the same in each."""
        at = self.root / name
        at.mkdir(exist_ok=True)
        if "compress" in name:
            shutil.copy(self.root / "films.csv", at)  # the task file is written beside it
        return at

    def words(self, verb: str) -> tuple[str, ...]:
        """A command to be run in a folder of its own."""
        where = ("--output", "out", "--store", "store", "--quiet")
        if verb == "compress":
            aims = ("--parameters", "0.8", "--batch-size", "1")
            return ("compress", "../model", "films.csv", *COMPRESS, *aims, *where)
        if verb == "attack":
            return (
                "attack",
                "../ticket",
                "--recipe",
                "deepwordbug",
                "-n",
                "16",
                "--output",
                "out",
                "--quiet",
            )
        if verb == "study":
            return ("study", "../study.yaml", "--tickets", *where)
        return (verb, f"../{verb}.yaml", *where)

    def finish(self, *words: str, at: Path, tally: Path | None = None) -> float:
        """Run a command undisturbed; the seconds that it took."""
        start, process = time.monotonic(), command(*words, at=at, tally=tally)
        process.join(1200)
        assert process.exitcode == 0, words
        return time.monotonic() - start

    def calm(self, verb: str) -> Calm:
        """Run a command undisturbed, twice: the first time it loads what this process then has for the others."""
        at, tally = self.folder(f"calm-{verb}"), self.root / "tally.json"
        self.finish(*self.words(verb), at=self.folder(f"loading-{verb}"), tally=tally)
        load_modules(json.loads(tally.read_text())["modules"])
        seconds = self.finish(*self.words(verb), at=at, tally=tally)
        return Calm(self.words(verb), at, seconds, json.loads(tally.read_text())["changes"])

    def compare(self, at: Path, calm: Path) -> None:
        """Nothing is left behind, and all files are as without the storm."""
        assert leftovers(at) == []
        if (at / "store").is_dir():
            self.finish("store", "gc", "--days", "0", "--yes", "--store", "store", at=at)
        ours, theirs = content(at), content(calm)
        differing = [name for name in theirs if ours.get(name) != theirs[name]]
        assert differing == []
        assert ours.keys() == theirs.keys()


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A model, three tasks, a data file and recipes on disk."""
    root = tmp_path_factory.mktemp("storm")
    world = make_world(root, rows=(48, 16, 16))
    recipe = world.recipe(
        model="../model",
        task="../task.yaml",
        train=TRAIN,
        search={"method": "magnitude"},
        draw={"sparsity": 0.5},
        attack={"recipes": ["deepwordbug"], "n": 8},
    )
    (root / "run.yaml").write_text(yaml.safe_dump(recipe))
    (root / "study.yaml").write_text(
        yaml.safe_dump({**recipe, "seed": [1, 2], "train": {**TRAIN, "epochs": 8}})
    )
    for name in ("first", "second"):
        task = {**yaml.safe_load(world.task.read_text()), "name": name}
        (root / f"{name}.yaml").write_text(yaml.safe_dump(task))
    shared = {
        "name": "shared",
        "model": "../model",
        "tasks": ["../first.yaml", "../second.yaml"],
        "precision": "fp32",
        "train": TRAIN,
        "single": {"epochs": 1},
        "search": {"method": "magnitude", "units": "head", "start": "finetuned"},
        "sparsity": 0.5,
    }
    (root / "share.yaml").write_text(yaml.safe_dump(shared))
    rows = dict.fromkeys(sentences(120, seed=5))
    (root / "films.csv").write_text(
        "\n".join(["sentence,label", *(f"{text},{label}" for text, label in rows)]) + "\n"
    )
    os.environ.setdefault("TOMBOLA_CACHE", str(root / "cache"))
    return Place(root)


@pytest.fixture(scope="session")
def undisturbed(place):
    """By verb, the command that nothing happened to; each is run when it is first asked for."""
    found: dict[str, Calm] = {}

    def find(verb: str) -> Calm:
        if verb == "attack" and not (place.root / "ticket").exists():
            ticket = next((find("run").at / "out" / "tickets").iterdir())
            (place.root / "ticket").symlink_to(ticket)
        if verb not in found:
            found[verb] = place.calm(verb)
        return found[verb]

    return find
