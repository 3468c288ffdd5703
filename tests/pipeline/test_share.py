"""`tombola share` from a recipe to a table, tickets, and one task that is really smaller."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

import tombola
from tests.pipeline.engines.test_ranks import launch
from tests.tiny import token_ids
from tests.training.test_resume import Killed
from tests.world import World
from tombola.cli import app, main
from tombola.errors import RecipeError, TombolaError
from tombola.foundations.settings import checked
from tombola.masks import Mask
from tombola.pipeline.sharing import WITH, WITHOUT, plan_share
from tombola.pipeline.watching import Watcher
from tombola.recipe.checking import check_file
from tombola.recipe.reading import load_recipe
from tombola.recipe.share import ShareRecipe, check_share
from tombola.results.result import Result
from tombola.store.store import Store
from tombola.tickets.multitask import MultiTaskTicket


@pytest.fixture(scope="module")
def tasks(world: World, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The world's sentiment task, the number of words in three classes, and the same as a real number."""
    paths = [str(world.task)]
    for name, labels in (("size", ["short", "middle", "long"]), ("length", None)):
        folder = tmp_path_factory.mktemp(name)
        for split in ("train", "validation"):
            lines = ["sentence\tlabel"]
            for row in world.task.with_name(f"{split}.tsv").read_text().splitlines()[1:49]:
                sentence = row.split("\t")[0]
                words = len(sentence.split())
                lines.append(f"{sentence}\t{labels[min(max(words - 3, 0), 2)] if labels else words}")
            (folder / f"{split}.tsv").write_text("\n".join(lines) + "\n")
        task: dict[str, Any] = {
            "name": name,
            "version": 1,
            "kind": "classification" if labels else "regression",
            "text": "sentence",
            "metrics": ["accuracy"] if labels else ["pearson"],
            "source": {"files": {split: f"{split}.tsv" for split in ("train", "validation")}},
        }
        (folder / "task.yaml").write_text(yaml.safe_dump(task | ({"labels": labels} if labels else {})))
        paths.append(str(folder / "task.yaml"))
    return paths


@pytest.fixture(scope="module")
def recipe(world: World, tasks: list[str]) -> dict[str, Any]:
    return {
        "name": "tiny-share",
        "model": str(world.model),
        "tasks": tasks,
        "seed": [1, 2],
        "precision": "fp32",
        "train": {"epochs": 2, "learning_rate": 3e-3, "batch_size": 16, "max_length": 16},
        "single": {"epochs": 1},
        "search": {"method": "magnitude", "units": "head", "start": "finetuned"},
        "sparsity": 0.5,
        "per_task": {tasks[1]: {"sparsity": 0}, tasks[2]: {"sparsity": 0.25, "data": {"train": 32}}},
    }


@pytest.fixture(scope="module")
def ran(recipe: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    folder = tmp_path_factory.mktemp("share")
    return tombola.share(recipe, output=folder / "out", store=folder / "store"), folder


@pytest.mark.thorough
def test_a_ticket_of_several_tasks_can_be_copied(ran: tuple[Result, Path], tmp_path: Path) -> None:
    _, folder = ran
    ticket = MultiTaskTicket.from_pretrained(next((folder / "out" / "tickets").iterdir()))
    copy = MultiTaskTicket.from_pretrained(ticket.save_pretrained(tmp_path / "copy"))
    assert copy.info == ticket.info
    shown = f"MultiTaskTicket({str(copy.folder)!r}): {', '.join(map(repr, ticket.tasks))}"
    assert repr(copy) == shown
    name = ticket.tasks[0]
    for first, second in zip(ticket.model(name).parameters(), copy.model(name).parameters(), strict=True):
        assert torch.equal(first, second)


def test_every_task_is_scored_with_and_without_tickets_and_so_is_their_average(
    ran: tuple[Result, Path],
) -> None:
    result, folder = ran
    rows = result.sharing("validation")
    assert [(row.task, row.metric) for row in rows] == [
        ("tiny", "accuracy"), ("size", "accuracy"), ("length", "pearson"), ("average", None),
    ]  # fmt: skip
    saved = Result.load(folder / "out")
    assert len(saved.cells) == 2 * 2 * 3
    for row in rows[:3]:
        values = {
            (cell.variant, cell.seed): cell.scores["validation"][row.metric].value
            for cell in saved.cells
            if cell.axes["task"] == row.task
        }
        for variant, spread in ((WITHOUT, row.without), (WITH, row.shared)):
            own = [values[variant, seed] for seed in (1, 2)]
            assert spread.mean == pytest.approx(np.mean(own))
            assert spread.std == pytest.approx(np.std(own, ddof=1))
        gains = [values[WITH, seed] - values[WITHOUT, seed] for seed in (1, 2)]
        assert row.difference.mean == pytest.approx(np.mean(gains))
        assert row.difference.std == pytest.approx(np.std(gains, ddof=1))
    assert rows[3].shared.mean == pytest.approx(np.mean([row.shared.mean for row in rows[:3]]))
    averages = [
        np.mean([c.scores["validation"][r.metric].value for r in rows[:3] for c in saved.cells
                 if (c.variant, c.axes["task"], c.seed) == (WITH, r.task, seed)])
        for seed in (1, 2)
    ]  # fmt: skip
    assert rows[3].shared.std == pytest.approx(np.std(averages, ddof=1))
    assert saved.record.sharing["validation"][3].task == "average"


def test_remaining_weights_are_what_each_mask_keeps(ran: tuple[Result, Path]) -> None:
    result, folder = ran
    ticket = MultiTaskTicket.from_pretrained(folder / "out" / "tickets" / "seed-1")
    assert [ticket.mask(task).removed for task in ticket.tasks] == [4, 0, 2]  # of 8 heads
    for row in result.sharing("validation")[:3]:
        assert row.remaining == pytest.approx(1 - ticket.mask(row.task).parameter_sparsity)


def test_nothing_runs_twice_and_a_new_task_share_reuses_the_tickets(
    ran: tuple[Result, Path], recipe: dict[str, Any]
) -> None:
    result, folder = ran
    again = tombola.share(recipe, output=folder / "again", store=folder / "store")
    assert again.record.stages.run_now == 0
    assert again.record.sharing == result.record.sharing
    store = Store(folder / "store")
    other = plan_share({**recipe, "seed": 1, "sampling": {"kind": "uniform"}})
    missing = [stage.kind for stage in other.stages if not store.has(stage)]
    assert missing == ["share", *["evaluate_shared"] * 3] * 2


@pytest.mark.thorough
def test_a_command_killed_while_it_shares_goes_on_and_ends_the_same(
    ran: tuple[Result, Path], recipe: dict[str, Any], tmp_path: Path
) -> None:
    result, folder = ran
    shutil.copytree(folder / "store", tmp_path / "store")
    for kind in ("share", "evaluate_shared"):
        shutil.rmtree(tmp_path / "store" / kind)
    often = {**recipe, "seed": 1, "train": {**recipe["train"], "checkpoint_minutes": 0}}

    class Killer(Watcher):
        def progressed(self, stage: Any, step: int, steps: int, figures: Any) -> None:
            if stage.label.endswith(WITH) and step == 9:
                raise Killed

    with pytest.raises(Killed):
        tombola.share(often, output=tmp_path / "out", store=tmp_path / "store", watcher=Killer())
    assert not (tmp_path / "out" / "results.json").exists()
    assert len(list((tmp_path / "store" / "share").glob("*.partial/work/checkpoints/step-8"))) == 1
    again = tombola.share(often, output=tmp_path / "out", store=tmp_path / "store")
    for cell in again.cells:
        (same,) = [one for one in result.cells if one.label == cell.label]
        assert cell.scores == same.scores
    for name in ("model.safetensors", "tasks/tiny/head.safetensors"):
        ended = (tmp_path / "out" / "tickets" / "seed-1" / name).read_bytes()
        assert ended == (folder / "out" / "tickets" / "seed-1" / name).read_bytes()


def test_a_task_that_shares_everything_costs_no_fine_tuning(recipe: dict[str, Any]) -> None:
    plan = plan_share({**recipe, "seed": 1})
    kinds = [stage.kind for stage in plan.stages]
    assert kinds.count("train") == kinds.count("draw") == 2
    models = {cell.cell.variant: cell.model for cell in plan.cells}
    assert set(models[WITH].inputs) == {"masks.0", "masks.2"}
    assert not models[WITHOUT].inputs


def test_the_ticket_gives_back_every_task_as_it_was_scored(ran: tuple[Result, Path]) -> None:
    _, folder = ran
    ticket = MultiTaskTicket.from_pretrained(folder / "out" / "tickets" / "seed-2")
    assert ticket.tasks == ["tiny", "size", "length"]
    for name, task in zip(ticket.tasks, ticket.info["recipe"]["tasks"], strict=True):
        cut = ticket.cut(name, folder / "cut" / name)
        found = tombola.evaluate(cut)["validation"]
        for metric, score in ticket.metrics[name]["validation"].items():
            assert found[metric].value == pytest.approx(score["value"])
        own, model = cut.model().eval(), ticket.model(name).eval()
        weights = model.state_dict()
        assert own.state_dict().keys() == weights.keys()
        assert all(torch.equal(tensor, weights[key]) for key, tensor in own.state_dict().items())
        tokens = token_ids(length=5) % 20  # equal weights at other addresses may round differently
        torch.testing.assert_close(own(tokens).logits, model(tokens).logits, rtol=1e-5, atol=1e-6)
        assert cut.mask == ticket.mask(name)
        assert cut.recipe["task"] == task
    assert "3 tasks on one" in (ticket.folder / "README.md").read_text()


def test_a_task_cut_out_shrinks(ran: tuple[Result, Path], tmp_path: Path) -> None:
    _, folder = ran
    shared = folder / "out" / "tickets" / "seed-1"
    said = CliRunner().invoke(
        app, ["shrink", str(shared), "--task", "tiny", "-o", str(tmp_path / "small")], catch_exceptions=False
    )
    assert said.exit_code == 0
    assert "4 of 8 units removed" in " ".join(said.stdout.split())
    from transformers import AutoModelForSequenceClassification

    small = AutoModelForSequenceClassification.from_pretrained(tmp_path / "small").eval()
    masked = MultiTaskTicket.from_pretrained(shared).model("tiny").eval()
    tokens = token_ids(length=5) % 20
    assert small.num_parameters() < masked.num_parameters()
    torch.testing.assert_close(small(tokens).logits, masked(tokens).logits, atol=1e-5, rtol=0)


def test_an_existing_folder_is_not_overwritten_by_a_cut(ran: tuple[Result, Path], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(TombolaError, match="already exists"):
        MultiTaskTicket.from_pretrained(ran[1] / "out" / "tickets" / "seed-1").cut("tiny", tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_the_command_prints_a_table(ran: tuple[Result, Path], recipe: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    said = CliRunner().invoke(
        app,
        [
            "share",
            str(tmp_path / "recipe.yaml"),
            "--store",
            str(ran[1] / "store"),
            "-o",
            str(tmp_path / "out"),
        ],
        catch_exceptions=False,
    )
    assert said.exit_code == 0
    for word in ("without", "tickets", "difference", "parameters", "average", "pearson", "over 2 seeds"):
        assert word in said.stdout
    assert json.loads((tmp_path / "out" / "results.json").read_text())["stages"]["run_now"] == 0
    assert "a valid recipe" in check_file(str(tmp_path / "recipe.yaml"))


def test_a_ticket_of_several_tasks_needs_a_task_to_shrink(
    ran: tuple[Result, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = str(ran[1] / "out" / "tickets" / "seed-1")
    monkeypatch.setattr(sys, "argv", ["tombola", "shrink", shared, "-o", "nowhere"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "pass --task, one of tiny, size, length" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sparsity": 1.5}, "sparsity: must be less than 1"),
        ({"samplign": {}}, "unknown key 'samplign'. Did you mean 'sampling'"),
        ({"sampling": {"kind": "equal"}}, "sampling.kind: must be 'proportional', 'annealed' or 'uniform'"),
        ({"sampling": {"alpha": 0.3}}, "sampling: alpha: only works with kind: annealed, not proportional"),
        ({"per_task": {"ret": {}}}, "per_task: unknown task 'ret'"),
        ({"tasks": ["rte", "rte"]}, "tasks: must be unique"),
        ({"seed": [3, 3]}, "seed: must be unique"),
        ({"tasks": ["rte", "squad"]}, "squad is a question-answering task"),
        ({"tasks": ["rte"]}, "tasks:"),
        ({"train": {"loss": {"kind": "poe"}}}, "train.loss: poe belongs to one task"),
    ],
)
def test_a_wrong_recipe_is_one_sentence(changes: dict[str, Any], message: str) -> None:
    raw = {"model": "minilm", "tasks": ["rte", "sst2"], **changes}
    with pytest.raises(RecipeError) as caught:
        checked(ShareRecipe, raw)
    assert message in str(caught.value)


def test_a_change_of_the_sparsity_replaces_the_counts_of_a_task(
    recipe: dict[str, Any], tasks: list[str]
) -> None:
    counted = {**recipe, "per_task": {tasks[0]: {"heads": 1}}}
    checked_recipe = check_share(load_recipe(counted, ["sparsity=0.5"]))
    draws = [checked_recipe.for_task(task, 1).recipe.draw for task in tasks]
    assert {(draw.sparsity, draw.counts) for draw in draws} == {(0.5, None)}


def test_only_the_seed_makes_a_grid(recipe: dict[str, Any]) -> None:
    grid = {**recipe, "search": {**recipe["search"], "units": ["head", "weight"]}}
    with pytest.raises(RecipeError, match=r"search.units: takes one value here"):
        plan_share(grid)


def test_a_single_task_is_trained_as_all_are_unless_said() -> None:
    raw = {
        "model": "minilm",
        "tasks": ["rte", "mnli"],
        "train": {"epochs": 5, "learning_rate": 5e-5, "optimizer": "adamax"},
        "single": {"epochs": 6},
        "per_task": {"mnli": {"single": {"epochs": 3}, "sparsity": 0}},
    }
    said: ShareRecipe = checked(ShareRecipe, raw)
    rte, mnli = (said.for_task(task, 7).recipe for task in said.tasks)
    assert (rte.train.epochs, mnli.train.epochs, said.train.epochs) == (6, 3, 5)
    assert {one.train.optimizer for one in (rte, mnli)} == {"adamax"}
    assert (rte.draw.sparsity, mnli.draw.sparsity, rte.seed) == (0.1, 0, 7)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "mtl",
            {
                "mnli": 0,
                "cola": 0,
                "rte": 0.1,
                "qqp": 0.1,
                "qnli": 0.1,
                "stsb": 0.1,
                "sst2": 0.2,
                "mrpc": 0.3,
            },
        )
    ],
)
def test_the_published_tickets_are_those_of_the_recipe(name: str, expected: dict[str, float]) -> None:
    from tests.tiny import tiny
    from tombola.masks import Scores, Units
    from tombola.recipe.builtin import find_recipe
    from tombola.recipe.reading import load_recipe
    from tombola.search import searches

    said: ShareRecipe = checked(ShareRecipe, load_recipe(find_recipe(f"super_tickets/{name}")))
    assert {task: said.sparsity_of(task) for task in said.tasks} == expected
    base = {"num_hidden_layers": 12, "hidden_size": 24, "num_attention_heads": 12, "intermediate_size": 24}
    units = Units.of(tiny("bert", **base), "head+ffn")
    scores = Scores(units, {g.name: torch.rand(g.shape, dtype=torch.float64) for g in units.groups})
    counts = {}
    for task in said.tasks:
        search = said.for_task(task, 1).recipe.search
        assert search is not None
        mask: Mask = searches[search.method].choose(search, scores, expected[task], "global", None)
        gone = dict.fromkeys(("head", "ffn"), 0)
        for group in units.groups:
            gone[group.kind] += group.count - int(mask[group.name].sum())
        counts[task] = (gone["head"], gone["ffn"])
    assert counts == {
        "mnli": (0, 0), "cola": (0, 0), "rte": (14, 1), "qqp": (14, 1), "qnli": (14, 1), "stsb": (14, 1),
        "sst2": (28, 2), "mrpc": (43, 3),
    }  # fmt: skip


@pytest.mark.thorough
def test_two_processes_share_what_one_does(recipe: dict[str, Any], tmp_path: Path) -> None:
    """The same global batch, and at every step the same task on both: 16 at once, or 8 on each of two ranks."""
    train = {**recipe["train"], "dropout": 0.0, "group_by_length": False}
    raw = {**recipe, "seed": 1, "train": train, "single": {"epochs": 1, "batch_size": 16}}
    tombola.share(raw, output=tmp_path / "one", store=tmp_path / "one/store")
    file = tmp_path / "recipe.yaml"
    halves = {"train": {**train, "batch_size": 8}, "single": {"epochs": 1, "batch_size": 8}}
    file.write_text(yaml.safe_dump({**raw, **halves}))
    done = launch(file, tmp_path / "two", tmp_path / "two/store", "share")
    assert done.returncode == 0, done.stdout + done.stderr
    one, two = (
        MultiTaskTicket.from_pretrained(tmp_path / name / "tickets/seed-1") for name in ("one", "two")
    )
    for task in one.tasks:
        assert one.mask(task) == two.mask(task)
        weights, others = (dict(ticket.model(task).named_parameters()) for ticket in (one, two))
        for name, weight in weights.items():
            if not name.endswith("key.bias"):  # softmax does not see it: its gradient is rounding
                assert torch.allclose(weight, others[name], atol=1e-3), name


def test_a_task_brings_its_own_ticket_data_and_scores(
    recipe: dict[str, Any], ran: tuple[Result, Path], tasks: list[str], world: World, tmp_path: Path
) -> None:
    own = tombola.run(
        world.recipe(
            train=recipe["train"],
            search={"method": "magnitude", "units": "head", "start": "finetuned"},
            draw={"heads": 3},
        ),
        output=tmp_path / "own",
        store=tmp_path / "store",
    )
    ticket = tmp_path / "own" / str(own.cells[0].ticket)
    changed = {
        **recipe,
        "seed": 1,
        "sparsity": 0,
        "per_task": {
            tasks[0]: {
                "search": {"method": "given", "masks": [str(ticket)]},
                "evaluate": {"on": ["validation", "other"]},
                "metrics": ["accuracy", "mcc"],
            },
            tasks[1]: {"heads": 2},
        },
    }
    result = tombola.share(changed, output=tmp_path / "out", store=tmp_path / "store")
    shared = MultiTaskTicket.from_pretrained(tmp_path / "out" / "tickets" / "seed-1")
    assert shared.mask("tiny") == Mask.load(ticket / "mask.safetensors")
    assert [shared.mask(task).removed for task in shared.tasks] == [3, 2, 0]
    rows = result.sharing("validation")
    assert [(row.task, row.on, row.metric) for row in rows[:4]] == [
        ("tiny", on, metric) for on in ("validation", "other") for metric in ("accuracy", "mcc")
    ]
    with_tickets = [np.mean([row.shared.mean for row in rows[:4]]), *(row.shared.mean for row in rows[4:6])]
    assert rows[6].shared.mean == pytest.approx(np.mean(with_tickets))
    table = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html")])
    assert table.exit_code == 0


def test_every_seed_is_checked(recipe: dict[str, Any]) -> None:
    with pytest.raises(RecipeError, match=r"seed.1: must be greater than or equal to 0, not -1"):
        check_share({**recipe, "seed": [1, -1]})


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"metrics": ["f2"]}, r"per_task\..*\.metrics: unknown metric 'f2'"),
        ({"heads": 1, "sparsity": 0.1}, "heads and ffns: replace sparsity"),
        ({"ffns": 1}, r"ffns"),
        ({"evaluate": {"on": ["nonsense"]}}, "nonsense"),
        (
            {"search": {"units": "weight", "classifier": True}},
            "search.classifier: every task has its own head",
        ),
    ],
)
def test_what_is_said_of_one_task_is_checked(
    recipe: dict[str, Any], tasks: list[str], own: dict[str, Any], sentence: str
) -> None:
    for task in (tasks[0], tasks[1]):
        with pytest.raises(RecipeError, match=sentence):
            plan_share({**recipe, "per_task": {task: own}})
