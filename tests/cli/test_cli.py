"""The command as a person at a terminal meets it."""

import errno
import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.failing import fails
from tombola import api
from tombola.cli import VERBS, app, interrupts, main
from tombola.errors import TombolaError
from tombola.recipe.builtin import recipe_names
from tombola.recipe.catalogue import catalogue
from tombola.recipe.checking import check_file


def tombola(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)


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


def test_evaluate_scores_changed_texts_as_a_recipe_does(ran, world):
    folder, _ = ran
    out = folder / "typos"
    assert tombola(
        "run", folder / "recipe.yaml", "draw.sparsity=0.3", "evaluate.on=[other+typos]",
        "--store", folder / "store", "-o", out,
    ).exit_code == 0  # fmt: skip
    (cell,) = json.loads((out / "results.json").read_text())["cells"]
    scored = tombola(
        "evaluate", out / cell["ticket"], "--on", "other+typos", "--on", "other", "-o", out / "scores.json"
    )
    assert scored.exit_code == 0
    found = json.loads((out / "scores.json").read_text())["scores"]
    assert found["other+typos"] == cell["scores"]["other+typos"]
    assert found["other+typos"]["accuracy"]["value"] < found["other"]["accuracy"]["value"]
    with pytest.raises(TombolaError, match=r"unknown change of other 'tpyos'\. Did you mean 'typos'"):
        tombola("evaluate", out / cell["ticket"], "--on", "other+tpyos")


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


def test_validate_reads_the_data_when_asked(ran, world):
    folder, _ = ran
    said = tombola("validate", folder / "recipe.yaml", world.task, "--data").stdout
    assert said.count("tiny/train: 192 rows (negative ") == 2
    assert "tokens of" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "no-such-recipe"], "no recipe file no-such-recipe"),
        (["run", "quickstart", "modle=x"], "unknown key 'modle'. Did you mean 'model'"),
        (["run", "quickstart", "train.epochs=lots"], "train.epochs: must be a valid number"),
        (["run", "quickstart", "task=review"], "unknown task 'review'. Did you mean 'reviews'"),
        (["run", "quickstart", "model=/no/such/model"], "model '/no/such/model': there is no such folder"),
        (["run", "quickstart", "evaluate.on=[tests]"], "to evaluate on 'tests'. Did you mean 'test'"),
        (["run", "bert_tickets/rte", "model=minilm"], "No data for rte/train. Looked in"),
        (["evaluate", "minilm"], "its task is unknown: pass --task NAME"),
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


@pytest.mark.parametrize("group", [app, *(one.typer_instance for one in app.registered_groups)])
def test_help_is_a_line_per_paragraph_and_its_examples_can_be_pasted(group):
    for command in group.registered_commands:
        for paragraph in command.help.split("\n\n"):
            assert "\n" not in paragraph  # Typer would break the line there, however wide the terminal is
        example = command.help.partition("Example:[/bold] ")[2].replace("\\[", "[")
        quoted = "".join(example.split("'")[::2])
        assert "[" not in quoted, example  # zsh takes an unquoted bracket for a pattern


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
    assert "does not make matrices smaller" in fails(
        monkeypatch, capsys, "shrink", weights, "-o", tmp_path / "no"
    )
    assert "whole file" in tombola("shrink", weights, "--pack", "-o", tmp_path / "packed.safetensors").stdout


def test_an_attack_that_cannot_begin_leaves_no_folder(ran, tmp_path):
    folder, _ = ran
    ticket = sorted((folder / "out" / "tickets").iterdir())[0]
    with pytest.raises(TombolaError, match="tset"):
        tombola("attack", ticket, "--split", "tset", "-o", tmp_path / "new" / "attacked")
    assert not (tmp_path / "new").exists()


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


# --- what verbs say, and where


@pytest.fixture(scope="module")
def ticket(ran):
    folder, _ = ran
    return sorted((folder / "out" / "tickets").iterdir())[0]


def test_progress_goes_to_stderr_and_results_to_stdout(ran):
    _, result = ran
    assert "stages, 0 finished" in result.stderr
    assert "6 stages finished in" in result.stderr.splitlines()[-1]
    assert "fine-tune" not in result.stdout
    assert "results.json" not in result.stderr


def again(ran, *options):
    folder, _ = ran
    return tombola(
        "run", folder / "recipe.yaml", "draw.sparsity=[0.3, 0.5]", "--no-report",
        "--store", folder / "store", "-o", folder / "out", *options,
    )  # fmt: skip


def test_quiet_prints_nothing_but_paths(ran):
    folder, _ = ran
    result = again(ran, "--quiet")
    assert result.stdout.split() == [
        "results", str(folder / "out" / "results.json"), "tickets", str(folder / "out" / "tickets"),
    ]  # fmt: skip
    assert result.stderr == ""


def test_json_is_one_object_a_line_and_ends_with_the_result(ran, world, tmp_path):
    folder, _ = ran
    result = again(ran, "--json")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert [event["event"] for event in events] == ["planned", "result"]
    assert (events[0]["stages"], events[0]["to_run"]) == (6, 0)
    assert events[-1]["paths"]["results"] == str(folder / "out" / "results.json")
    cells = json.loads((folder / "out" / "results.json").read_text())["cells"]
    assert [row["scores"]["validation"]["mean"] for row in events[-1]["scores"]] == [
        pytest.approx(cell["scores"]["validation"]["accuracy"]["value"], abs=1e-6) for cell in cells
    ]
    assert "30 %" in result.stderr  # people read there
    assert again(ran, "--json", "--quiet").stderr == ""


def test_json_tells_of_a_mistake_too(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tombola", "run", "no-such-recipe", "--json"])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    (event,) = [json.loads(line) for line in said.out.splitlines()]
    assert event["event"] == "failed"
    assert "no recipe file no-such-recipe" in event["reason"]
    assert "\ntombola: there is no recipe file" in said.err


def test_json_tells_of_a_place_that_cannot_be_written(ticket, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["tombola", "evaluate", str(ticket), "-o", str(tmp_path), "--json", "--quiet"]
    )
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    event = json.loads(said.out.splitlines()[-1])
    assert (event["event"], event["reason"]) == ("failed", f"{tmp_path}: is a folder; name a file")
    assert f"tombola: {tmp_path}: is a folder; name a file" in said.err


def test_nothing_that_a_library_prints_gets_between_the_events(ticket, tmp_path):
    plugin = tmp_path / "chatty.py"
    plugin.write_text("print('hello from a plugin')\n")
    result = tombola("evaluate", ticket, "--json", "--plugin", plugin)
    assert [json.loads(line)["event"] for line in result.stdout.splitlines()][-1] == "result"
    assert "hello from a plugin" in result.stderr


@pytest.mark.parametrize("verb", ["run", "study", "transfer"])
def test_a_dry_run_runs_nothing_and_counts_everything(ran, world, tmp_path, verb):
    folder, _ = ran
    task = ["--source", world.task] if verb == "transfer" else []
    result = tombola(
        verb, folder / "recipe.yaml", "draw.sparsity=[0.3, 0.6]", *task,
        "--store", folder / "store", "-o", tmp_path / "out", "--dry-run", "--json",
    )  # fmt: skip
    plan = json.loads(result.stdout.splitlines()[-1])["plan"]
    assert plan["cells"] == (3 if verb == "transfer" else 2)
    assert plan["finished"] == 3
    assert plan["training_steps"] == (2 if verb == "transfer" else 1) * 72
    assert plan["stages"] == (8 if verb == "transfer" else 6)
    assert plan["seconds"] > 0
    assert not (tmp_path / "out").exists()
    assert max(map(len, result.stderr.splitlines())) <= 90


@pytest.mark.slow
def test_workers_give_the_same_result_as_one_process(ran, tmp_path):
    folder, _ = ran
    result = tombola(
        "run", folder / "recipe.yaml", "draw.sparsity=[0.3, 0.5]", "--no-report", "--workers", 2,
        "--store", tmp_path / "store", "-o", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0
    one, two = (
        json.loads((place / "out" / "results.json").read_text())["cells"] for place in (folder, tmp_path)
    )
    assert [cell["scores"] for cell in one] == [cell["scores"] for cell in two]
    assert "train the ticket, seed 1: started" in result.stderr


def test_a_stage_that_fails_is_told_at_once_with_its_log(ran, world, tmp_path, monkeypatch, capsys):
    folder, _ = ran
    said = fails(
        monkeypatch, capsys, "run", folder / "recipe.yaml", "train.learning_rate=1.0e+30",
        "--store", tmp_path / "store", "-o", tmp_path / "out",
    )  # fmt: skip
    failed = next(line for line in said.splitlines() if "failed after" in line)
    log = failed.rpartition("Log: ")[2]
    assert "Traceback" in Path(log).read_text()
    assert said.splitlines()[-1].startswith("tombola: ")


def test_a_plugin_of_the_command_line_can_be_named(ticket, tmp_path):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from typing import ClassVar, Literal\n"
        "from tombola.attacks.base import attacks\n"
        "from tombola.attacks.deepwordbug import DeepWordBug\n"
        "@attacks.register\n"
        "class Mine(DeepWordBug):\n"
        "    paper: ClassVar[str] = 'my own'\n"
        "    name: Literal['mine'] = 'mine'\n"
    )
    assert "my own" in tombola("list", "attacks", "--plugin", plugin).stdout
    assert "my own" in tombola("--plugin", plugin, "list", "attacks").stdout
    result = tombola(
        "attack", ticket, "--recipe", "mine", "-n", 4, "-o", tmp_path / "out", "--plugin", plugin
    )
    assert "mine on" in result.stdout


def test_settings_of_an_attack_come_from_the_command_line(ticket, tmp_path, monkeypatch, capsys):
    arguments = ("attack", ticket, "--recipe", "deepwordbug", "-n", 4, "-o", tmp_path / "out")
    tombola(*arguments, "--set", "max_edits=2")
    saved = json.loads((tmp_path / "out" / "report.json").read_text())
    assert saved["settings"]["max_edits"] == 2
    assert "Did you mean 'max_edits'" in fails(monkeypatch, capsys, *arguments, "--set", "max_edit=1")
    assert "key=value" in fails(monkeypatch, capsys, *arguments, "--set", "max_edits")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_plugins_and_every_long_one_quiet_and_json(verb):
    groups = {"store": ["gc"], "task": ["init"]}
    said = tombola(verb, *groups.get(verb, []), "--help").stdout
    assert "--plugin" in said
    short = ("inspect", "report", "compare", "import", "list", "task", "validate", "store", "doctor")
    assert ("--json" in said) == ("--quiet" in said) == (verb not in short)


def test_the_verbs_are_the_functions_of_the_api():
    from tombola import api

    renamed = {"list": "catalogue", "import": "import_mask", "task": "init_task"}
    for verb in VERBS:
        if verb != "store":
            assert callable(getattr(api, renamed.get(verb, verb))), verb


def test_doctor_fits_eighty_columns_and_names_what_runs_depend_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = tombola("doctor", "--store", "store")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for name in ("torch", "precision", "store", "memory"):
        assert name in result.stdout


# --- how the command ends


def ended_by(monkeypatch, capsys, error, *arguments):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("tombola.api.overview.catalogue", fail)
    monkeypatch.setattr(sys, "argv", ["tombola", "list", "tasks"])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr().err


def test_a_full_disk_is_a_sentence_that_says_what_to_do(monkeypatch, capsys):
    code, said = ended_by(monkeypatch, capsys, OSError(errno.ENOSPC, "No space left on device", "out/x"))
    assert code == 2
    assert said == (
        "tombola: out/x: No space left on device. Free some space (`tombola store gc`), or choose another disk with "
        "--output and --store\n"
    )
    assert ended_by(monkeypatch, capsys, OSError(errno.ENOSPC, "No space left on device"))[0] == 2


def test_a_file_that_cannot_be_written_is_named(monkeypatch, capsys):
    code, said = ended_by(monkeypatch, capsys, PermissionError(errno.EACCES, "Permission denied", "out/x"))
    assert (code, said) == (2, "tombola: out/x: Permission denied\n")


def test_ctrl_c_is_a_sentence_and_exit_code_130(monkeypatch, capsys):
    code, said = ended_by(monkeypatch, capsys, KeyboardInterrupt())
    assert (code, said) == (130, "tombola: interrupted; the same command starts over\n")


@pytest.mark.parametrize(
    "error", [TypeError("expected a message argument"), TombolaError("cannot be imported")]
)
def test_ctrl_c_that_a_library_turned_into_an_error_is_the_same_sentence(monkeypatch, capsys, error):
    assert interrupts.interrupted(error) is False
    monkeypatch.setattr(interrupts, "_came", [])
    with pytest.raises(KeyboardInterrupt):
        interrupts._note(signal.SIGINT, None)
    code, said = ended_by(monkeypatch, capsys, error)
    assert (code, said) == (130, "tombola: interrupted; the same command starts over\n")


LONG_VERBS = {
    "run": ("api.running.plan_run", "resumes where it stopped"),
    "study": ("pipeline.study.read_study", "resumes where it stopped"),
    "share": ("api.running.plan_share", "resumes where it stopped"),
    "compress": ("api.orders.plan_compression", "resumes where it stopped"),
    "attack": ("tickets.opening.folder_of", "resumes where it stopped"),
    "prune": ("api.pruning.prune", "resumes where it stopped"),
    "evaluate": ("api.tickets.evaluate", "starts over"),
}


@pytest.mark.parametrize("name", LONG_VERBS)
def test_ctrl_c_promises_to_go_on_where_that_is_so(name, tmp_path, monkeypatch, capsys):
    function, promised = LONG_VERBS[name]

    def press(*_, **__):
        raise KeyboardInterrupt

    module, _, attribute = f"tombola.{function}".rpartition(".")
    for place in (api, importlib.import_module(module)):
        monkeypatch.setattr(place, attribute, press, raising=False)
    arguments = {"compress": ["model", "data"], "prune": ["model", "task", "-o", "out"]}.get(name, ["model"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tombola", name, *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err.splitlines()[-1]
    assert (stopped.value.code, said) == (130, f"tombola: interrupted; the same command {promised}")


def test_a_reader_that_goes_away_gets_no_traceback():
    done = subprocess.run(
        f"{sys.executable} -m tombola list | head -1",
        shell=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    assert done.stdout.split()[:1] == ["models"]
    assert done.stderr == ""


@pytest.mark.slow
def test_ctrl_c_while_bars_are_drawn(ran, tmp_path):
    """On a real terminal: the bars go, the cursor comes back, and the sentence is the last line."""
    import pty
    import select

    folder, _ = ran
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell in the background ignores it
        arguments = [
            "run",
            folder / "recipe.yaml",
            "train.epochs=500",
            "--store",
            tmp_path,
            "-o",
            tmp_path / "out",
        ]
        os.execve(sys.executable, [sys.executable, "-m", "tombola", *map(str, arguments)],
                  {**os.environ, "TERM": "xterm", "COLUMNS": "80"})  # fmt: skip
    shown, pressed = b"", False
    while True:
        select.select([terminal], [], [], 60)
        try:
            more = os.read(terminal, 65536)
        except OSError:
            break
        if not more:
            break
        shown += more
        if not pressed and b"/6000 " in shown:
            os.write(terminal, b"\x03")
            pressed = True
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert b"stage 3 of" in shown or b"stage 2 of" in shown
    assert b"\x1b[?25h" in shown  # the cursor
    assert b"tombola: interrupted; the same command to resume" in shown.splitlines()[-1]
    assert b"Traceback" not in shown


def test_task_init_says_what_it_recognised_and_writes_a_task_that_loads(tmp_path):
    rows = [f"a sentence number {n};{'yes' if n % 3 else 'no'}" for n in range(60)]
    (tmp_path / "mine.csv").write_text("\n".join(["words;answer", *rows]))
    told = tombola("task", "init", tmp_path / "mine.csv")
    assert told.exit_code == 0
    assert told.stdout.splitlines()[:4] == [
        "text: words",
        "label: answer",
        "delimiter: ';'",
        "2 labels: no, yes; the most common one, yes, in 67%",
    ]
    file = tmp_path / "mine.task.yaml"
    assert f"tombola validate {file} --data" in told.stdout
    checked = tombola("validate", file, "--data")
    assert checked.exit_code == 0
    assert "mine/train: 42 rows (no 14, yes 28)" in checked.stdout


def test_list_is_short_until_it_is_asked_for_more():
    short = tombola("list").stdout
    assert len(short.splitlines()) < 40
    assert "tasks" in short
    assert "Stanford" not in short
    assert "textfooler" in tombola("list", "robust").stdout
    assert "robust_tickets/quick" in tombola("list", "recipes", "robust").stdout
    assert "textfooler" not in tombola("list", "recipes", "robust").stdout
    assert "lexical_overlap" in tombola("list", "bias", "models").stdout
