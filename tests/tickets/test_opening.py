"""Opening what has learned a task: evaluate, attack and inspect on a ticket of several tasks."""

import json
import shutil
from itertools import cycle, islice
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import tombola
from tests.tiny import tiny
from tests.world import World
from tombola.cli import app
from tombola.errors import ModelError, TombolaError, UnknownName
from tombola.tickets.multitask import MultiTaskTicket
from tombola.tickets.opening import open_classifier, tasks_of
from tombola.tickets.texts import texts_of
from tombola.tickets.ticket import ticket_card


def command(*arguments: object):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def shared(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ticket of two classification tasks and one regression task."""
    folder = tmp_path_factory.mktemp("shared")
    tasks = [str(world.task)]
    for name, labels in (("size", ["short", "long"]), ("length", None)):
        (folder / name).mkdir()
        for split in ("train", "validation"):
            rows = [
                row.split("\t")[0]
                for row in world.task.with_name(f"{split}.tsv").read_text().splitlines()[1:33]
            ]
            lines = [f"{row}\t{labels[len(row.split()) > 4] if labels else len(row.split())}" for row in rows]
            (folder / name / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
        task = {
            "name": name, "version": 1, "text": "sentence",
            "kind": "classification" if labels else "regression",
            "metrics": ["accuracy"] if labels else ["pearson"],
            "source": {"files": {split: f"{split}.tsv" for split in ("train", "validation")}},
            **({"labels": labels} if labels else {}),
        }  # fmt: skip
        (folder / name / "task.yaml").write_text(yaml.safe_dump(task))
        tasks.append(str(folder / name / "task.yaml"))
    recipe = {
        "name": "tiny-share", "model": str(world.model), "tasks": tasks, "precision": "fp32", "sparsity": 0.25,
        "train": {"epochs": 1, "learning_rate": 3e-3, "batch_size": 16, "max_length": 12},
        "search": {"method": "magnitude", "units": "head"},
    }  # fmt: skip
    result = tombola.share(recipe, output=folder / "out", store=folder / "store")
    return result.folder / "tickets" / "seed-1"


def test_all_tasks_are_scored_as_when_the_ticket_was_made(shared: Path) -> None:
    ticket = MultiTaskTicket.from_pretrained(shared)
    scores = tombola.evaluate(shared)
    assert list(scores) == ["tiny: validation", "size: validation", "length: validation"]
    for task, metric in (("tiny", "accuracy"), ("size", "accuracy"), ("length", "pearson")):
        made = ticket.metrics[task]["validation"][metric]["value"]
        assert scores[f"{task}: validation"][metric].value == pytest.approx(made, abs=1e-6)
        assert tombola.evaluate(ticket, task=task)["validation"][metric].value == pytest.approx(
            made, abs=1e-6
        )


def test_a_relative_task_file_is_known_in_any_working_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = shutil.copytree(world.task.parent, tmp_path / "work", ignore=shutil.ignore_patterns("model"))
    for name in ("one", "two"):
        (work / f"{name}.yaml").write_text(world.task.read_text().replace("name: tiny", f"name: {name}"))
    monkeypatch.chdir(work)
    common = {"model": str(world.model), "precision": "fp32", "train": {"steps": 1, "max_length": 16}}
    search = {"method": "magnitude", "units": "head"}
    tombola.run({**common, "name": "run", "task": "one.yaml", "search": search}, store="store")
    tombola.share(
        {**common, "name": "share", "tasks": ["one.yaml", "two.yaml"], "search": search}, store="store"
    )
    tickets = {
        "run": (None, next(Path("runs/run/tickets").iterdir())),
        "share": ("two", Path("runs/share/tickets/seed-1")),
    }
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, (task, place) in tickets.items():
        scores = tombola.evaluate(work / place, task=task)
        moved = shutil.copytree(work / place, tmp_path / "moved" / name)
        assert tombola.predict(moved, ["a very fine film"], task=task)
        assert tombola.evaluate(moved, task=task, data=work) == scores


@pytest.mark.parametrize("file", ["model.safetensors", "tasks/size/head.safetensors"])
def test_weights_that_are_missing_are_not_made_up(shared: Path, tmp_path: Path, file: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(shared, copy)
    (copy / "checksums.json").unlink()
    _, *rest = load_file(copy / file).items()
    save_file(dict(rest), copy / file, {"format": "pt"})
    with pytest.raises(ModelError, match=r"copy or (save|create) it again"):
        open_classifier(copy, "size", None)


def test_one_task_is_opened_with_its_data_and_its_length(shared: Path) -> None:
    opened = open_classifier(shared, "size", None)
    assert opened.task.endswith("size/task.yaml")
    assert opened.max_length == 12
    assert opened.model.config.num_labels == 2
    assert tasks_of(shared) == ["tiny", "size", "length"]


def test_a_task_that_is_missing_or_unknown_is_told_with_those_there_are(shared: Path) -> None:
    with pytest.raises(TombolaError, match="pass --task, one of tiny, size, length"):
        tombola.attack(shared, "deepwordbug")
    with pytest.raises(UnknownName, match="Did you mean 'size'"):
        tombola.evaluate(shared, task="sizes")
    with pytest.raises(TombolaError, match="pass --task, one of"):
        tombola.export(shared, shared / "x.onnx")


def test_the_command_prints_one_table_over_all_tasks(shared: Path, tmp_path: Path) -> None:
    table = command("evaluate", shared).stdout
    assert [name for name in ("tiny: validation", "size: validation", "length: validation") if name in table]
    inspected = command("inspect", shared).stdout
    assert "overlap of kept weights" in inspected
    assert "seed-1: tiny" in inspected
    assert "overlap" not in command("inspect", shared, "--task", "size").stdout
    attacked = command("attack", shared, "--recipe", "deepwordbug", "-n", 4, "-o", tmp_path / "a", "--json")
    result = json.loads(attacked.stdout.splitlines()[-1])
    assert list(result["figures"]) == ["tiny", "size"]
    assert (
        "length is skipped: attacks need a classification task, and it is a regression task"
        in attacked.stderr
    )
    assert "under attack" in attacked.stderr
    assert json.loads((tmp_path / "a" / "size" / "report.json").read_text())["summary"]["n"] == 4
    one = command(
        "attack", shared, "--recipe", "deepwordbug", "-n", 4, "-o", tmp_path / "b", "--task", "tiny"
    )
    assert one.exit_code == 0
    assert (tmp_path / "b" / "examples.csv").is_file()


def test_a_ticket_of_one_task_takes_no_task_to_shrink(shared: Path, tmp_path: Path) -> None:
    cut = MultiTaskTicket.from_pretrained(shared).cut("tiny", tmp_path / "cut")
    with pytest.raises(TombolaError, match="leave out --task"):
        tombola.api.shrink(cut.folder, tmp_path / "small", task="tiny")
    whole = tombola.api.shrink(shared, tmp_path / "small", task="tiny")
    assert whole.removed == 2


def places(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where something stands in JSON: every key, and the first entries of lists."""
    pairs = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    return [at, *(place for key, inner in pairs for place in places(inner, (*at, key)))]


NONSENSE = [None, [], {"a": {"b": []}}, "x", -1, float("inf"), "\ud800"]


@pytest.mark.parametrize("first", [0, 3])
def test_a_ticket_that_says_nonsense_gets_a_sentence(shared: Path, tmp_path: Path, first: int) -> None:
    folder = shutil.copytree(shared, tmp_path / "shared")
    (folder / "checksums.json").unlink()  # or all would end there
    whole, messages = json.loads((folder / "share.json").read_text()), []
    wrong = [one for one in places(whole) if one[:1] != ("provenance",)][1:]
    for place, nonsense in zip(wrong, islice(cycle(NONSENSE), first, None), strict=False):
        told = json.loads(json.dumps(whole))
        inner = told
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = nonsense
        (folder / "share.json").write_text(json.dumps(told))
        try:
            ticket = MultiTaskTicket.from_pretrained(folder)
            open_classifier(folder, ticket.tasks[0], None)
            ticket_card({**ticket.about(ticket.tasks[0]), "versions": {}})
        except TombolaError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert max(len(message.splitlines()) for message in messages) <= 20


@pytest.mark.parametrize("recipe", [{}, {"task": 1}, {"task": "tiny", "train": "x"}, {"task": []}])
def test_a_ticket_without_a_task_gets_a_sentence(shared: Path, tmp_path: Path, recipe: object) -> None:
    MultiTaskTicket.from_pretrained(shared).cut("size", tmp_path / "ticket")
    (tmp_path / "ticket" / "checksums.json").unlink()
    info = json.loads((tmp_path / "ticket" / "ticket.json").read_text())
    (tmp_path / "ticket" / "ticket.json").write_text(json.dumps({**info, "recipe": recipe}))
    if recipe.get("task") == "tiny":
        assert open_classifier(tmp_path / "ticket", None, None).max_length == 128
    else:
        with pytest.raises(TombolaError, match="does not record its task: pass --task NAME"):
            open_classifier(tmp_path / "ticket", None, None)
    assert open_classifier(tmp_path / "ticket", "size", None).task == "size"


def test_weights_stored_in_16_bits_are_opened_in_32(tmp_path: Path) -> None:
    tiny("bert").to(torch.bfloat16).save_pretrained(tmp_path)
    assert open_classifier(tmp_path, "reviews", None).model.dtype == torch.float32


def test_a_ticket_is_read_at_the_length_of_its_retraining(world: World, tmp_path: Path) -> None:
    """In the run, on the way there, and by every verb that opens the ticket later."""
    short = {"epochs": 1, "batch_size": 16, "max_length": 4, "learning_rate": 3e-3}
    recipe = world.recipe(
        train=short,
        search={"method": "magnitude"},
        retrain={"max_length": 16, "epochs": 6},
        evaluate={"every": "epoch"},
        variants={"dense": {"search": None}, "ticket": {}},
    )
    result = tombola.run(recipe, output=tmp_path / "out", store=tmp_path / "store")
    dense, cell = result.cells
    assert cell.course["validation"][-1].scores == cell.scores["validation"]
    ticket = result.folder / cell.ticket
    assert open_classifier(ticket, None, None).max_length == 16
    assert open_classifier(result.folder / dense.model, None, None).max_length == 4
    assert tombola.evaluate(ticket)["validation"] == cell.scores["validation"]
    assert texts_of(ticket, open_classifier(ticket, None, None).model.config).length > 4
