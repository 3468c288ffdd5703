"""The command as a person at a terminal meets it."""

import json
import os
import subprocess
import sys

import pytest
import yaml
from typer.testing import CliRunner

from tombola.cli import app, main
from tombola.recipe.builtin import recipe_names
from tombola.recipe.catalogue import catalogue, check_file


def tombola(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


def fails(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["tombola", *(str(one) for one in arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    assert stopped.value.code == 2
    assert "Traceback" not in said.err
    return said.err


@pytest.fixture(scope="module")
def ran(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "recipe.yaml").write_text(yaml.safe_dump(world.recipe(search={"method": "magnitude"})))
    result = tombola(
        "run",
        folder / "recipe.yaml",
        "draw.sparsity=[0.3, 0.5]",
        "--store",
        folder / "store",
        "-o",
        folder / "out",
    )
    return folder, result


def test_run_prints_a_table_and_says_where_everything_is(ran):
    folder, result = ran
    assert result.exit_code == 0
    assert "30 %" in result.stdout
    assert "±" in result.stdout
    assert str(folder / "out" / "results.json") in result.stdout
    assert len(json.loads((folder / "out" / "results.json").read_text())["cells"]) == 2
    assert (folder / "out" / "report.html").is_file()


def test_evaluate_gives_the_score_of_the_run(ran):
    folder, _ = ran
    cells = json.loads((folder / "out" / "results.json").read_text())["cells"]
    scored = tombola(
        "evaluate", folder / "out" / cells[0]["ticket"], "--on", "validation", "-o", folder / "scores.json"
    )
    assert scored.exit_code == 0
    found = json.loads((folder / "scores.json").read_text())["scores"]["validation"]["accuracy"]["value"]
    assert found == pytest.approx(cells[0]["scores"]["validation"]["accuracy"]["value"])


def test_inspect_shows_layers_overlap_and_writes_unions_and_a_plot(ran, tmp_path):
    folder, _ = ran
    tickets = sorted((folder / "out" / "tickets").iterdir())
    shown = tombola(
        "inspect", *tickets, "--union", tmp_path / "u.safetensors", "--intersection", tmp_path / "i.safetensors",
        "--plot", tmp_path / "masks.html",
    )  # fmt: skip
    assert shown.exit_code == 0
    assert "query" in shown.stdout
    from tombola.masks import Mask

    masks = [Mask.load(ticket / "mask.safetensors") for ticket in tickets]
    assert Mask.load(tmp_path / "u.safetensors") == masks[0] | masks[1]
    assert Mask.load(tmp_path / "i.safetensors") == masks[0] & masks[1]
    assert '"kind":"heatmap"' in (tmp_path / "masks.html").read_text()


def test_list_has_a_line_for_everything():
    for kind, rows in catalogue().items():
        assert rows, kind
        assert all(about for _, about in rows), kind
    assert "iterative" in tombola("list", "methods").stdout


@pytest.mark.parametrize("name", recipe_names())
def test_every_shipped_recipe_is_valid(name):
    assert "a valid recipe" in check_file(name)


def test_validate_tells_recipes_and_tasks(ran, world):
    folder, _ = ran
    said = tombola("validate", folder / "recipe.yaml", world.task).stdout
    assert "a valid recipe, 1 cell in 1 variant" in said
    assert "a valid task, tiny version 1" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "no-such-recipe"], "no recipe file no-such-recipe"),
        (["run", "quickstart", "modle=x"], "unknown key 'modle'. Did you mean 'model'"),
        (["run", "quickstart", "train.epochs=lots"], "train.epochs: takes a valid number"),
        (["run", "quickstart", "task=review"], "unknown task 'review'. Did you mean 'reviews'"),
        (["run", "quickstart", "model=/no/such/model"], "model '/no/such/model': there is no such folder"),
        (["run", "quickstart", "evaluate.on=[tests]"], "to evaluate on 'tests'. Did you mean 'test'"),
        (["run", "bert_tickets/rte", "model=minilm"], "No data for rte/train. Looked in"),
        (["evaluate", "minilm"], "does not know its task: pass --task NAME"),
        (["inspect", "nowhere.safetensors"], "nowhere.safetensors"),
        (["list", "taks"], "unknown list 'taks'. Did you mean 'tasks'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_exit_code_2(monkeypatch, capsys, tmp_path, arguments, sentence):
    monkeypatch.delenv("TOMBOLA_DATA", raising=False)
    monkeypatch.setenv("TOMBOLA_STORE", str(tmp_path))
    assert sentence in fails(monkeypatch, capsys, *arguments)


def test_every_verb_has_help_with_an_example():
    verbs = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert set(verbs) >= {"quickstart", "run", "evaluate", "inspect", "list", "validate", "transfer"}
    for verb in verbs:
        said = tombola(verb, "--help").stdout
        assert "Example:" in said, verb


def test_importing_the_package_and_asking_for_help_load_nothing_heavy():
    code = (
        "import sys, tombola, tombola.cli; "
        "print([name for name in ('torch', 'transformers', 'numpy', 'pydantic') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert said.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["list", "recipes"], ["torch", "transformers", "numpy"]),
        (["list", "tasks"], ["torch", "transformers"]),
        (["validate", "quickstart"], ["transformers", "sklearn", "scipy", "accelerate"]),
    ],
)
def test_no_one_waits_for_what_a_verb_does_not_use(words, unused):
    code = (
        f"import sys, tombola.cli; tombola.cli.app({words}, standalone_mode=False); "
        f"sys.exit(str([name for name in {unused} if name in sys.modules]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert said.stderr.strip() == "[]"


def test_everything_that_the_readme_imports_is_there():
    import tombola as package

    for name in package.__all__:
        assert getattr(package, name) is not None


def test_a_foreign_model_with_another_label_order_is_scored_by_name(ran, world, tmp_path):
    from tombola import Ticket, evaluate
    from tombola.tasks import Task

    folder, _ = ran
    ticket = Ticket.from_pretrained(sorted((folder / "out" / "tickets").iterdir())[0])
    model = ticket.model()
    model.classifier.weight.data = model.classifier.weight.data.flip(0)
    model.classifier.bias.data = model.classifier.bias.data.flip(0)
    model.config.id2label = {0: "POSITIVE", 1: "NEGATIVE"}
    model.config.label2id = {"POSITIVE": 0, "NEGATIVE": 1}
    model.save_pretrained(tmp_path)
    ticket.tokenizer().save_pretrained(tmp_path)
    same = evaluate(tmp_path, task=str(world.task))["validation"]["accuracy"].value
    assert same == evaluate(ticket)["validation"]["accuracy"].value
    assert Task.named(str(world.task)).labels == ["negative", "positive"]


def test_a_ticket_of_heads_is_shrunk_and_one_of_weights_is_packed(ran, world, tmp_path, monkeypatch, capsys):
    from transformers import AutoModelForSequenceClassification

    import tombola as package

    folder, _ = ran
    recipe = world.recipe(search={"method": "magnitude", "units": "head"}, draw={"sparsity": 0.25})
    result = package.run(recipe, output=tmp_path / "heads", store=folder / "store")
    ticket = result.folder / result.cells[0].ticket
    said = tombola("shrink", ticket, "-o", tmp_path / "small").stdout
    assert "2 of 8 units removed" in said
    assert "parameters" in said
    small = AutoModelForSequenceClassification.from_pretrained(tmp_path / "small")
    whole = package.Ticket.from_pretrained(ticket).model()
    assert small.num_parameters() < whole.num_parameters()
    weights = sorted((folder / "out" / "tickets").iterdir())[0]
    assert "do not make a dense model faster" in fails(
        monkeypatch, capsys, "shrink", weights, "-o", tmp_path / "no"
    )
    assert "whole file" in tombola("shrink", weights, "--pack", "-o", tmp_path / "packed.safetensors").stdout


def test_attack_prints_its_figures_keeps_every_example_and_writes_a_task(ran, tmp_path):
    folder, _ = ran
    ticket = sorted((folder / "out" / "tickets").iterdir())[0]
    out = tmp_path / "attacked"
    said = tombola("attack", ticket, "--recipe", "deepwordbug", "-n", 16, "-o", out, "--as-task", "hard")
    assert said.exit_code == 0
    assert "accuracy under attack" in said.stdout
    summary = json.loads((out / "report.json").read_text())["summary"]
    assert summary["n"] == 16
    assert (out / "examples.csv").read_text().startswith("original_text,perturbed_text,original_score")
    assert "<html" in (out / "diff.html").read_text()
    found = tombola("evaluate", ticket, "--on", out / "hard.yaml", "--json")
    (scores,) = json.loads(found.stdout.splitlines()[-1])["scores"].values()
    assert scores["accuracy"]["value"] == 0  # the model is wrong on all that fooled it
