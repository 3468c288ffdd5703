"""A flipped bit in any file that a command writes is found when the file is read, or does no harm."""

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.storm.weather import Ledger, command, flip, kill_group
from tombola.attacks import neighbours
from tombola.attacks.report import AttackReport
from tombola.errors import TombolaError
from tombola.foundations.hardware.verdicts import Verdict, VerdictFile
from tombola.masks import Mask
from tombola.models.finding import find_folder
from tombola.results.result import Result
from tombola.shrink import unpack
from tombola.store.roots import damaged_roots
from tombola.store.store import Store
from tombola.tickets.exporting import export_folder
from tombola.tickets.multitask import MultiTaskTicket
from tombola.tickets.shrinking import pack_ticket, shrink_ticket
from tombola.tickets.ticket import Ticket

pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("TOMBOLA_STORM", "1"))
SEED = int(os.environ.get("TOMBOLA_STORM_SEED", "0"))
HARMLESS = ("README.md", "report.html")
"""Files that people read and no command does."""
ASIDE = ("films.csv", "films.task.yaml", "journal.jsonl")
"""The user's data, the task file that is the user's to edit, and the journal, which has a test of its own."""


@pytest.fixture(scope="module")
def museum(place, undisturbed, tmp_path_factory, monkeypatch_module):
    """A folder with a copy of every kind of file."""
    root = tmp_path_factory.mktemp("museum")
    for verb in ("run", "share", "attack", "compress"):
        shutil.copytree(undisturbed(verb).at, root / verb)
    monkeypatch_module.chdir(place.folder("calm-run"))  # the recipes of tickets lead from there
    ticket = next((root / "run" / "out" / "tickets").iterdir())
    pack_ticket(ticket, root / "packed" / "packed.safetensors")
    export_folder(ticket, root / "exported", int8=True)
    shared = MultiTaskTicket.from_pretrained(next((root / "share" / "out" / "tickets").iterdir()))
    shared.cut("first", root / "cut" / "ticket")
    shrink_ticket(root / "cut" / "ticket", root / "shrunk", batch_sizes=(1,), length=8, rounds=1)
    (root / "mask").mkdir()
    shutil.copy(ticket / "mask.safetensors", root / "mask")
    monkeypatch_module.setenv("TOMBOLA_CACHE", str(root / "cache"))
    VerdictFile({"machine": "this"}).write(Verdict("fp32", "bf16 is slower", None, 1.0, 2.0))
    table()
    return root


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def table():
    vectors = neighbours.Vectors(["a", "b", "c"], np.eye(3, dtype=np.float32))
    return neighbours.kept_table("museum", 2, "a test", lambda: vectors)


def notice(root: Path, path: Path) -> str:
    """Read what a file belongs to, as commands do; the message about it, if there is one."""
    room, *parts = path.relative_to(root).parts
    folder = root / room
    try:
        match room, parts[0]:
            case "packed", _:
                unpack(path)
            case "mask", _:
                Mask.load(path)
            case (("exported" | "shrunk"), _):
                find_folder(str(folder))
            case "cache", "hardware":
                return "" if VerdictFile({"machine": "this"}).read() else f"{path.name} is computed again"
            case "cache", _:
                return "" if neighbours._kept(path) else f"{path.name} is computed again"
            case _, "store":
                store = Store(folder / "store")
                if parts[1] == "roots":
                    return " ".join(damaged_roots(store))
                store.open("/".join(parts[1:3]))
            case _, _ if path.name == "results.json":
                Result.load(folder / "out")
            case "attack", _:
                AttackReport.load(path.parent)
            case _, _ if path.name not in HARMLESS:
                place = folder.joinpath(*parts[: 2 if room in ("compress", "cut") else 3])
                place = folder / "ticket" if room == "cut" else place
                (MultiTaskTicket if (place / "share.json").exists() else Ticket).from_pretrained(place)
    except TombolaError as error:
        return str(error)
    return ""


def test_flipped_bits_are_named(museum):
    rng, found, harmless = random.Random(f"{SEED} bits"), Counter(), Counter()
    kinds: dict[str, list[Path]] = {}
    for path in sorted(museum.rglob("*")):
        if path.is_file() and path.stat().st_size and path.suffix not in (".lock", ".log"):
            room, *parts = path.relative_to(museum).parts
            if path.name not in ASIDE:
                stem = "…" if parts[-1].startswith("neighbours-") or "roots" in parts else parts[-1]
                kinds.setdefault(
                    f"{room}/{'/'.join(parts[:2]) if 'store' in parts else parts[0]}/{stem}", []
                ).append(path)
    names = list(kinds)
    count = max(len(names), round(50 * SCALE))
    for number in range(count):
        path = rng.choice(kinds[names[number % len(names)]])
        whole = flip(path, rng)
        message = notice(museum, path)
        path.write_bytes(whole)
        if path.name in HARMLESS:
            harmless[path.name] += 1
            assert not message
        else:
            assert message, path
            assert path.name in message, (path, message)
            found[path.name if "roots" not in path.parts else "roots"] += 1
        assert not notice(museum, path)
    told = {"found": sum(found.values()), "harmless": dict(harmless), "kinds of files": len(names)}
    print(json.dumps({"storm": "flipped bits", "flips": count, **told, "by name": dict(found)}), flush=True)


def test_a_damaged_checkpoint_is_dropped(place, undisturbed):
    """A run is stopped while it trains, a bit of its newest checkpoint flips, and it ends with the same bytes."""
    calm, ledger = undisturbed("run"), Ledger()
    done, number = ledger.done("flips in checkpoints")
    while done < max(1, round(SCALE)):
        rng, number = random.Random(f"{SEED} checkpoint {number}"), number + 1
        at = place.folder(f"checkpoint-{number}")
        kill_group_at(calm, at, rng.randint(1, calm.changes))
        files = [
            path
            for path in sorted(at.glob("store/*/*.partial/work/**/step-*/*"))
            if "partial-" not in str(path.parent) and path.is_file()
        ]
        if files:
            flip(rng.choice(files), rng)
        place.finish(*calm.words, at=at)
        place.compare(at, calm.at)
        shutil.rmtree(at)
        done += bool(files)
        if files:
            ledger.add("flips in checkpoints", 1)


def kill_group_at(calm, at, change):
    process = command(*calm.words, at=at, die_at=change)
    process.join(600)
    kill_group(process)


def test_damaged_lines_of_a_journal_are_done_again(place, undisturbed):
    calm = undisturbed("attack")
    for number in range(max(1, round(2 * SCALE))):
        rng = random.Random(f"{SEED} journal {number}")
        at = place.folder(f"journal-{number}")
        shutil.copytree(calm.at / "out", at / "out")
        flip(at / "out" / "journal.jsonl", rng)
        place.finish(*calm.words, at=at)
        place.compare(at, calm.at)
        assert AttackReport.load(at / "out").resumed in (0, 14, 15)
        shutil.rmtree(at)
    print({"storm": "flips in journals", "flips": number + 1}, flush=True)
