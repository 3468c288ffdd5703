"""Whatever a recipe, a task, a ticket or a data file holds: an answer or one message, never a traceback, and soon."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

import tombola
from tests.boundary.mutating import NASTY, mutated
from tombola.api import plan_run
from tombola.errors import TombolaError
from tombola.models.loading import load_tokenizer, open_model
from tombola.results.result import Result
from tombola.tasks import Task

SECONDS = 5.0
LINES, CHARACTERS = 20, 10_000
FEW, MANY = 25, 1_250
"""Mutations of each of the kinds below: by default, and in the slow test (10,000 in all)."""


@pytest.fixture(scope="module")
def sound(world, tmp_path_factory) -> dict[str, tuple[Path, Any]]:
    """By kind: a sound file, and what is asked of the folder that it lies in."""
    folder = tmp_path_factory.mktemp("sound")
    recipe = world.recipe(
        search={"method": "magnitude"},
        draw={"sparsity": [0.5, 0.7]},
        evaluate={"on": ["validation", "other"]},
        attack={"recipes": ["deepwordbug"], "n": 4},
        variants={"dense": {"search": None}, "ticket": {}},
    )
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    plain = {key: value for key, value in recipe.items() if key not in ("attack", "variants")}
    run = tombola.run({**plain, "draw": {"sparsity": 0.5}}, output=folder / "out", store=folder / "store")
    ticket = run.folder / run.cells[0].ticket
    (ticket / "checksums.json").unlink()  # or every mutation would end there
    rows = [line.split("\t") for line in (world.task.parent / "train.tsv").read_text().splitlines()[1:30]]
    data = folder / "data"
    data.mkdir()
    (data / "train.tsv").write_text("sentence\tlabel\n" + "".join(f"{a}\t{b}\n" for a, b in rows))
    (data / "train.csv").write_text("sentence,label\n" + "".join(f'"{a}",{b}\n' for a, b in rows))
    (data / "train.jsonl").write_text(
        "".join(json.dumps({"sentence": a, "label": b}) + "\n" for a, b in rows)
    )
    task = yaml.safe_load(world.task.read_text())
    for form in ("tsv", "csv", "jsonl"):
        (data / f"{form}.yaml").write_text(
            yaml.safe_dump({**task, "source": {"files": {"train": f"train.{form}"}}})
        )
    return {
        "recipe": (folder / "recipe.yaml", lambda at: plan_run(at / "recipe.yaml")),
        "task": (data / "tsv.yaml", lambda at: Task.from_file(at / "tsv.yaml").load("train")),
        "tsv": (data / "train.tsv", lambda at: Task.from_file(at / "tsv.yaml").load("train")),
        "csv": (data / "train.csv", lambda at: Task.from_file(at / "csv.yaml").load("train")),
        "jsonl": (data / "train.jsonl", lambda at: Task.from_file(at / "jsonl.yaml").load("train")),
        "ticket": (ticket / "ticket.json", lambda at: tombola.Ticket.from_pretrained(at).recipe),
        "config": (ticket / "config.json", lambda at: open_model(at)),
        "tokenizer": (ticket / "tokenizer.json", lambda at: load_tokenizer(at)),
        "result": (folder / "out" / "results.json", lambda at: Result.load(at)),
    }


def try_one(sound: dict[str, tuple[Path, Any]], kind: str, content: bytes, work: Path) -> str | None:
    """What is wrong with the answer to a file of this content, if something is."""
    file, ask = sound[kind]
    if not work.exists():
        ignored = shutil.ignore_patterns("out", "store", "data") if kind == "recipe" else None
        shutil.copytree(file.parent, work, ignore=ignored)
    (work / file.name).write_bytes(content)
    start = time.process_time()
    try:
        ask(work)
    except TombolaError as error:
        message = str(error)
        if len(message.splitlines()) > LINES or len(message) > CHARACTERS:
            return f"a message of {len(message.splitlines())} lines and {len(message)} characters: {message[:200]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    took = time.process_time() - start
    return f"it took {took:.1f} s" if took > SECONDS else None


KINDS = ["recipe", "task", "tsv", "csv", "jsonl", "ticket", "config", "tokenizer", "result"]


def storm(sound: Any, kind: str, count: int, work: Path) -> list[str]:
    whole, wrong = sound[kind][0].read_bytes(), []
    assert try_one(sound, kind, whole, work) is None
    for number in range(count):
        if found := try_one(sound, kind, mutated(whole, f"{kind} {number}"), work):
            wrong.append(f"{kind} {number}: {found}")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_get_an_answer(sound, kind, tmp_path):
    assert storm(sound, kind, FEW, tmp_path / "work") == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutated_files_get_an_answer(sound, kind, tmp_path):
    assert (
        storm(sound, kind, MANY if kind != "recipe" else 10_000 - MANY * (len(KINDS) - 1), tmp_path / "w")
        == []
    )


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_nothing_but_nonsense_get_an_answer(sound, kind, tmp_path):
    wrong = [try_one(sound, kind, content, tmp_path / "work") for content in (b"", b"[]", b"{}", *NASTY)]
    assert [found for found in wrong if found] == []
