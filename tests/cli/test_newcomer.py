"""Plausible mistakes of somebody's first hour: each gets a sentence that says what to do next, and no traceback."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.failing import fails
from tests.world import World
from tombola.cli import app

pytestmark = pytest.mark.portable


@pytest.fixture(scope="module")
def place(world: World, tmp_path_factory):
    """A folder with a good recipe, and files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("with spaces")
    task = yaml.safe_load(world.task.read_text())
    task["source"] = {"files": {split: f"{split}.tsv" for split in ("train", "validation")}}
    for split in ("train", "validation"):
        (folder / f"{split}.tsv").write_text((world.task.parent / f"{split}.tsv").read_text())
    tasks = {
        "task": {},
        "column": {"text": "sentense"},
        "labels": {"labels": ["bad", "good"]},
        "metric": {"metrics": ["acuracy"]},
        "nofile": {"source": {"files": {"train": "nothere.tsv", "validation": "nothere.tsv"}}},
        "unknown": {"textt": "sentence"},
    }
    for name, change in tasks.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**task, **change}))
    (folder / "good.yaml").write_text(yaml.safe_dump({**world.recipe(), "task": str(folder / "task.yaml")}))
    (folder / "list.yaml").write_text("- model\n- task\n")
    (folder / "bracket.yaml").write_text("model: [a\ntask: b\n")
    (folder / "tab.yaml").write_text("model: a\n\ttask: b\n")
    (folder / "empty.yaml").write_text("")
    (folder / "nomodel.yaml").write_text("task: reviews\n")
    (folder / "model").symlink_to(world.model)
    (folder / "results").mkdir()
    return folder


MISTAKES = [
    # the command
    ("rnu quickstart", "Did you mean 'run'?"),
    ("run", "Missing argument 'recipe'"),
    ("run quickstart --sparsity 0.5", "No such option: --sparsity"),
    ("list taks", "Did you mean 'tasks'"),
    ("validate", "name recipes or task files"),
    # finding the recipe
    ("run {}/god.yaml", "Did you mean '{}/good.yaml'"),
    ("run {}/list.yaml", "a recipe is a mapping of settings"),
    ("run {}/bracket.yaml", "line 2: not valid YAML"),
    ("run {}/tab.yaml", "line 2: not valid YAML"),
    ("run {}/empty.yaml", "is empty; a recipe says at least model and task"),
    ("run {}/nomodel.yaml", "model: is required (an embedded model, a local folder or a hub id)"),
    ("run bert_ticket/quick", "Did you mean 'bert_tickets/quick'"),
    ("run quickstart model=/nowhere", "there is no such folder"),
    ("run quickstart attack=3", "attack: takes a mapping of settings, not 3"),
    # what a recipe may say
    ("run quickstart epochs", "an override is written key=value"),
    ("run quickstart sparsity=0.5", "unknown key 'sparsity'. Valid: about, attack"),
    ("run quickstart train.epoch=3", "Did you mean 'epochs'?"),
    ("run quickstart draw.sparsity=70", "draw.sparsity: takes less than 1, not 70"),
    ("run quickstart draw.sparsity=[]", "an empty list makes an empty grid"),
    ("run quickstart seed=-1", "seed: takes greater than or equal to 0"),
    ("run quickstart seed=one", "seed: takes a valid integer"),
    ("run quickstart precision=fp8", "takes 'auto', 'fp32'"),
    ("run quickstart variants=[a,b]", "takes a mapping from a name to the settings that differ"),
    ("run quickstart evaluate.on=validation", "takes a valid list, not 'validation'"),
    ("run quickstart task=sst-2", "Did you mean 'sst2'?"),
    ("run quickstart attack.recipes=[textfoler]", "Did you mean 'textfooler'"),
    ("run {}/good.yaml search={{method: magnitud}}", "Did you mean 'magnitude'?"),
    ("run {}/good.yaml search={{units: head}}", "search: needs a method, one of"),
    ("run {}/good.yaml search={{method: magnitude, units: heads}}", "Did you mean 'head'?"),
    (
        "run {}/good.yaml search={{method: learned, gate: {{kind: hard}}}}",
        "unknown gate 'hard'. Valid: bernoulli, hard_concrete",
    ),
    ("run {}/good.yaml train.loss={{kind: poe}}", "needs a bias model: add one, e.g. bias:"),
    ("run {}/good.yaml train.loss=poe", "takes a mapping with a kind, one of confidence, cross_entropy, poe"),
    (
        "run {}/good.yaml retrain.start=scratch",
        "'last_round' or 'searched', not 'scratch'",
    ),
    # models and data
    ("run {}/good.yaml model=bert-base-uncased", "not an embedded model (minilm), not a local folder"),
    ("run bert_tickets/sst2 model=minilm", "neither a folder nor TOMBOLA_DATA was given"),
    ("run bert_tickets/sst2 model=minilm data.folder=/nowhere", "The data folder /nowhere does not exist"),
    ("run {}/good.yaml task={}/column.yaml", "no column 'sentense'; the columns are 'sentence', 'label'"),
    ("run {}/good.yaml task={}/labels.yaml", "train.tsv:2: unknown label"),
    ("run {}/good.yaml task={}/nofile.yaml", "no file for tiny/train (looked for nothere.tsv)"),
    ("validate {}/metric.yaml", "unknown metric 'acuracy'. Did you mean 'accuracy'"),
    ("validate {}/unknown.yaml", "textt"),
    ("run {}/good.yaml evaluate.on=[stsb]", "it is a regression task"),
    # tickets and results
    ("evaluate {}/model --on validation", "does not know its task: pass --task NAME"),
    ("evaluate {}/model --task {}/task.yaml", "has no head: fine-tune it first"),
    ("attack {}/model --task {}/task.yaml", "has no head: fine-tune it first"),
    ("inspect {}/model", "is a model but not a ticket"),
    ("shrink {}/model -o {}/small", "is not a ticket: it has no mask.safetensors. `tombola run` leaves"),
    ("share quickstart", "the recipe names no `tasks` to share tickets: give it two or more"),
    ("run super_tickets/mtl_quick", "its `tasks` share tickets: `tombola share` takes it"),
    ("validate quickstart train.select.kind=first train.optimizer=adamax", "select works inside AdamW"),
    ("shrink {}/model", "Missing option '--output'"),
    ("inspect {}/model --task tiny", "is not a ticket of several tasks: leave out --task"),
    ("shrink {}/model -o {}/small --convert-pruned-heads", "has no pruned_heads in its config.json"),
    ("shrink {}/model -o {}/small --convert-pruned-heads --pack", "without --pack and --task"),
    ("export {}/model -o {}/x.onnx --task tiny", "is not a ticket of several tasks: leave out --task"),
    ("run quickstart --plugin nowhere.py", "plugin nowhere.py: there is no such file"),
    ("--plugin nowhere.py list", "plugin nowhere.py: there is no such file"),
    ("run quickstart --workers 0", "engine.workers: takes greater than 0, not 0"),
    ("run quickstart --engine local --address auto", "unknown key 'address'"),
    ("report {}/results", "give the folder that `tombola run`"),
    ("transfer {}/good.yaml --target rte", "needs a recipe with a search"),
]


@pytest.mark.parametrize(
    ("typed", "told"), MISTAKES, ids=[typed.replace("{}", "DIR") for typed, _ in MISTAKES]
)
def test_a_mistake_is_told_in_a_sentence(place, monkeypatch, capsys, typed, told):
    monkeypatch.delenv("TOMBOLA_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TOMBOLA_STORE", str(place / "store"))
    monkeypatch.setenv("COLUMNS", "300")
    said = fails(monkeypatch, capsys, *[word.replace("DIR", str(place)) for word in _words(typed)])
    assert told.replace("{}", str(place)).replace("{{", "{").replace("}}", "}") in said


def test_a_store_and_an_output_that_cannot_be_written_are_named(place, monkeypatch, capsys):
    (place / "file").write_text("")
    for option, path in (("--store", place / "file" / "store"), ("-o", place / "file" / "out")):
        arguments = ["run", str(place / "good.yaml"), "train.epochs=0.1", option, str(path)]
        if option == "-o":
            arguments += ["--store", str(place / "store")]
        said = fails(monkeypatch, capsys, *arguments)
        assert str(place / "file") in said


def test_a_mask_for_another_model_names_both_fingerprints(world, place, monkeypatch, capsys):
    import torch

    import tombola
    from tests.tiny import tiny

    other = tiny("bert", "base", vocab_size=99, hidden_size=32)
    units = tombola.Units.of(other, "weight")
    scores = {name: torch.rand(weight.shape) for name, weight in units.matrices(other).items()}
    tombola.draw(tombola.Scores.total(units, scores), sparsity=0.5).save(place / "other.safetensors")
    search = f"search={{method: given, masks: ['{place / 'other.safetensors'}']}}"
    said = fails(monkeypatch, capsys, "run", place / "good.yaml", search, "--store", place / "store")
    assert "bert" in said


def test_paths_with_spaces_are_fine(place):
    said = CliRunner().invoke(app, ["validate", str(place / "good.yaml"), str(place / "task.yaml")])
    assert said.exit_code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_the_command(monkeypatch, shell):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = CliRunner().invoke(app, ["--show-completion", shell], prog_name="tombola")
    assert script.exit_code == 0
    assert "_TOMBOLA_COMPLETE" in script.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("tombola tr", "transfer"), ("tombola run bert_tickets/qui", "bert_tickets/quick")],
)
def test_completion_offers_verbs_and_recipes_that_begin_so(typed, offered):
    last = str(len(typed.split()) - 1)
    asked = {"_TOMBOLA_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": last}
    said = CliRunner().invoke(app, [], prog_name="tombola", env=asked)
    assert said.stdout.split() == [offered]


def test_the_schema_accepts_every_shipped_recipe_and_refuses_a_typo():
    import jsonschema

    from tombola.foundations.yaml12 import parse_yaml
    from tombola.recipe.builtin import RECIPES
    from tombola.recipe.schema import recipe_schema

    checker = jsonschema.Draft202012Validator(recipe_schema())
    for path in RECIPES.rglob("*.yaml"):
        raw = parse_yaml(path.read_text())
        if "task" in raw:
            assert [error.message for error in checker.iter_errors(raw)] == [], path
    wrong = {"model": "minilm", "task": "reviews", "train": {"epoch": 3}}
    assert not checker.is_valid(wrong)
    printed = CliRunner().invoke(app, ["validate", "--schema"])
    assert json.loads(printed.stdout) == recipe_schema()


def _words(typed):
    """The words of a command line; a mapping in braces is one, and {} stands for the folder."""
    words, depth = [""], 0
    for letter in typed.replace("{}", "DIR").replace("{{", "{").replace("}}", "}"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == " " and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return words
