"""Plausible mistakes of somebody's first hour: each gets a sentence that says what to do next, and no traceback."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.failing import fails
from tests.world import World
from tombola.cli import app
from tombola.cli.attack import _name_of

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
    _write_data(folder, task)
    return folder


def _write_data(folder, task):
    """Data files that are wrong in one way each, with a task file for some."""
    rows = [
        f"a {word} film {n},{label}"
        for n in range(20)
        for word, label in (("fine", "positive"), ("dull", "negative"))
    ]
    head, good = "sentence,label", "\n".join(rows)
    files = {
        "data": f"{head}\n{good}\n",
        "one": f"{head}\n" + "\n".join(rows[::2]) + "\n",
        "other": f"{head}\na film,positive\na film,neutral\n",
        "both": f"{head}\na film,positive\n,neutral\n",
        "notext": f"{head}\na film,positive\n,positive\n",
        "nolabel": f"{head}\na film,positive\na film,\n",
        "commas": f"{head}\na film, and more,positive\n",
        "quotes": f'{head}\n"a film,positive\n',
        "empty": "",
        "header": f"{head}\n",
        "column": "sentence\na fine film here\n",
        "twotexts": "first,second,label\n" + "\n".join(f"a b c {n},d e f {n},{n % 2}" for n in range(30)),
    }
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
        source = {"files": {"train": "data.csv", "validation": f"{name}.csv"}}
        (folder / f"of_{name}.yaml").write_text(yaml.safe_dump({**task, "source": source}))
    (folder / "latin.csv").write_bytes(f"{head}\ncafé,positive\n".encode("latin-1"))
    source = {"files": {"train": "data.csv", "validation": "latin.csv"}}
    (folder / "of_latin.yaml").write_text(yaml.safe_dump({**task, "source": source}))
    (folder / "data.xlsx").write_bytes(b"PK")
    (folder / "broken").mkdir()
    for path in (folder / "model").iterdir():
        (folder / "broken" / path.name).write_bytes(path.read_bytes())
    weights = (folder / "broken" / "model.safetensors").read_bytes()
    (folder / "broken" / "model.safetensors").write_bytes(weights[:1000])


MISTAKES = [
    # the command
    ("rnu quickstart", "Did you mean 'run'?"),
    ("run", "Missing argument 'recipe'"),
    ("run quickstart --sparsity 0.5", "No such option: --sparsity"),
    ("list taks", "Did you mean 'tasks'"),
    ("validate", "name recipes or task files"),
    # finding the recipe
    ("run {}/god.yaml", "Did you mean '{}/good.yaml'"),
    ("run {}/list.yaml", "a recipe must be a mapping of settings"),
    ("run {}/bracket.yaml", "line 2: not valid YAML"),
    ("run {}/tab.yaml", "line 2: not valid YAML"),
    ("run {}/empty.yaml", "is empty; a recipe needs at least model and task"),
    ("run {}/nomodel.yaml", "model: is required (name from `tombola list models`, local folder or hub id)"),
    ("run bert_ticket/quick", "Did you mean 'bert_tickets/quick'"),
    ("run quickstart model=/nowhere", "there is no such folder"),
    ("run quickstart attack=3", "attack: takes a mapping of settings, not 3"),
    # what a recipe may say
    ("run quickstart epochs", "write overrides as key=value"),
    ("run quickstart sparsity=0.5", "unknown key 'sparsity'. Did you mean 'draw.sparsity'?"),
    ("run quickstart train.epoch=3", "Did you mean 'epochs'?"),
    ("run quickstart draw.sparsity=70", "draw.sparsity: must be less than 1, not 70"),
    ("run quickstart draw.sparsity=[]", "an empty list makes an empty grid"),
    ("run quickstart seed=-1", "seed: must be greater than or equal to 0"),
    ("run quickstart seed=one", "seed: must be a valid integer"),
    ("run quickstart precision=fp8", "must be 'auto', 'fp32'"),
    ("run quickstart variants=[a,b]", "unknown variant 'a'. Valid: original, ticket."),
    ("run quickstart variants=a", "takes a mapping from names to the settings that differ"),
    ("run quickstart evaluate.on=validation", "must be a valid list, not 'validation': write [validation]"),
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
    (
        "run {}/good.yaml model=bert-base-uncased",
        "not a local folder, and not in the local cache of the hub: unset HF_HUB_OFFLINE to download it",
    ),
    ("run bert_tickets/sst2 model=minilm", "neither data.folder nor TOMBOLA_DATA is set"),
    ("run bert_tickets/sst2 model=minilm data.folder=/nowhere", "The data folder /nowhere does not exist"),
    ("run {}/good.yaml task={}/column.yaml", "no column 'sentense'; the columns are 'sentence', 'label'"),
    ("run {}/good.yaml task={}/labels.yaml", "train.tsv:2: unknown label"),
    ("run {}/good.yaml task={}/nofile.yaml", "no file for tiny/train (looked for nothere.tsv)"),
    ("validate {}/metric.yaml", "unknown metric 'acuracy'. Did you mean 'accuracy'"),
    ("validate {}/unknown.yaml", "textt"),
    (
        "validate {}/task.yaml version=2",
        "is a task file, which cannot be changed by version=2: edit the file",
    ),
    ("run {}/good.yaml evaluate.on=[stsb]", "it is a regression task"),
    # tickets and results
    ("evaluate {}/model --on validation", "its task is unknown: pass --task NAME"),
    ("evaluate {}/model --task {}/task.yaml", "has no head: fine-tune it first"),
    ("evaluate {}/model --task {}/task.yaml --max-length 0", "max_length: must be greater than 2"),
    ("task init {}/data.csv -o {}/german.yaml --language German", "language"),
    (
        "attack {}/model --task {}/task.yaml",
        "fine-tune it first, e.g. `tombola run bert_tickets/quick 'model=",
    ),
    ("inspect {}/model", "is a model but not a ticket"),
    ("shrink {}/model -o {}/small", "is not a ticket: it has no mask.safetensors. `tombola run` writes"),
    ("share quickstart", "the recipe has no `tasks` that share an encoder: list two or more"),
    ("run super_tickets/mtl_quick", "this recipe has several `tasks`: run it with `tombola share`"),
    ("validate quickstart train.select.kind=first train.optimizer=adamax", "select only works with AdamW"),
    ("shrink {}/model", "Missing option '--output'"),
    ("inspect {}/model --task tiny", "is not a multi-task ticket: leave out --task"),
    ("shrink {}/model -o {}/small --convert-pruned-heads", "has no pruned_heads in its config.json"),
    ("shrink {}/model -o {}/small --convert-pruned-heads --pack", "without --pack and --task"),
    ("export {}/model -o {}/x.onnx --task tiny", "is not a multi-task ticket: leave out --task"),
    ("run quickstart --plugin nowhere.py", "plugin nowhere.py: there is no such file"),
    ("--plugin nowhere.py list", "plugin nowhere.py: there is no such file"),
    ("run quickstart --workers 0", "engine.workers: must be greater than 0, not 0"),
    ("run quickstart --engine local --address auto", "unknown key 'address'"),
    ("report {}/results", "contains neither a run nor an attack: pass a folder written by `tombola run`"),
    ("report {}/nowhere", "nowhere is not a folder: pass a folder written by `tombola run`"),
    ("report {}/data.csv", "data.csv is not a folder: pass a folder written by `tombola run`"),
    ("transfer {}/good.yaml --target rte", "needs a recipe with a search"),
    # keys as other tools call them
    (
        "run {}/good.yaml device=cuda",
        "unknown key 'device'. The device cannot be set: a GPU is used if there is one",
    ),
    ("run {}/good.yaml train.device=cpu", "to use none, with CUDA_VISIBLE_DEVICES="),
    ("run {}/good.yaml lr=1e-3", "Write it as train.learning_rate."),
    ("run {}/good.yaml train.num_train_epochs=3", "Write it as epochs."),
    ("run {}/good.yaml epochs=3", "Did you mean 'train.epochs' or 'retrain.epochs'?"),
    ("run {}/good.yaml fp16=true", "Write it as precision=fp16."),
    ("run {}/good.yaml metric=f1", "Metrics belong to the task"),
    ("run {}/good.yaml output=runs/x", "Use --output DIR."),
    # values that a recipe cannot take
    (
        "run {}/good.yaml train.learning_rate=2e-5x",
        "train.learning_rate: must be a valid number, not '2e-5x'",
    ),
    ("run {}/good.yaml train.batch_size=16.5", "train.batch_size: must be a valid integer, not 16.5"),
    ("run {}/good.yaml train.epochs=-1", "train.epochs: must be greater than or equal to 0, not -1"),
    ("run {}/good.yaml train.optimizer=adam", "train.optimizer: must be 'adamw' or 'adamax', not 'adam'"),
    (
        "run {}/good.yaml train.report_to=tensorboard",
        "must be a valid list, not 'tensorboard': write [tensorboard]",
    ),
    ("run {}/good.yaml train.report_to=[tensorbord]", "Did you mean 'tensorboard'?"),
    (
        "run {}/good.yaml train.report_to=[comet_ml]",
        "'comet_ml' is not installed: pip install comet_ml, or leave it",
    ),
    ("run {}/good.yaml variants.imp=null", "variants.imp: the recipe has no variants"),
    ("run bert_tickets/quick variants.mp=null", "unknown variant 'mp'. Did you mean 'omp' or 'imp'?"),
    (
        "run {}/good.yaml evaluate.on=[test]",
        "tiny has the splits train, validation; `tombola list tasks` shows",
    ),
    (
        "run {}/good.yaml evaluate.best=holdout",
        "exists only with data.holdout: set that to a share of the training data",
    ),
    (
        "run {}/good.yaml search={{method: random, units: head}} draw.sparsity=0.99",
        "is all of them: use a lower sparsity",
    ),
    ("run {}/good.yaml search={{method: importance}} draw.heads=8", "remove at most 6"),
    ("run {}/good.yaml search=[{method:", "quote the change, so that the shell does not split it"),
    # one file for another
    (
        "run {}/data.csv",
        "is a data file, neither a recipe nor a task file: `tombola task init '{}/data.csv'` writes",
    ),
    ("validate {}/data.csv", "and `tombola compress MODEL '{}/data.csv'` reads it directly"),
    ("run {}/good.yaml task={}/data.csv", "`tombola task init '{}/data.csv'` writes a task file for it"),
    (
        "compress {}/model {}/data.xlsx",
        "data.xlsx: cannot read '.xlsx' files as a task; use .csv, .tsv, .jsonl",
    ),
    ("compress {}/model {}/results", "results: is a folder that has no train.csv: name a data file in it"),
    (
        "run {}/good.yaml evaluate.on=[{}/data.csv]",
        "`tombola task init '{}/data.csv'` writes a task file for it",
    ),
    ("run {}/task.yaml", "is a task file, not a recipe: pass a recipe, and task={}/task.yaml"),
    ("run {}/good.yaml task={}/good.yaml", "is a recipe, not a task file: use the task that it names"),
    ("run {}/good.yaml model={}/task.yaml", "is a file; use a folder written by save_pretrained"),
    ("run {}/good.yaml model={}/results", "has no config.json, so it is not a transformers model folder"),
    ("run {}/good.yaml model={}", "; use a model folder below it, such as {}/"),
    ("run {}/good.yaml model={}/broken", "broken/model.safetensors is damaged"),
    # data of one's own
    (
        "validate --data {}/of_other.yaml",
        "other.csv:3: unknown label 'neutral'; expected one of negative, positive",
    ),
    ("validate --data {}/of_both.yaml", "both.csv:3: empty text in column 'sentence'"),
    (
        "validate --data {}/of_both.yaml",
        "unknown label 'neutral'; expected one of negative, positive: correct the row",
    ),
    ("validate --data {}/of_notext.yaml", "skip such rows with `source.skip_empty: true`"),
    ("validate --data {}/of_nolabel.yaml", "nolabel.csv:3: no label; expected one of negative, positive"),
    (
        "validate --data {}/of_commas.yaml",
        "commas.csv:2: 3 fields instead of 2 (sentence, label): put texts",
    ),
    ("validate --data {}/of_quotes.yaml", "quotes.csv:2: the row's quotes do not match up"),
    ("validate --data {}/of_empty.yaml", "empty.csv: the file is empty"),
    ("validate --data {}/of_header.yaml", "header.csv:1: contains no rows"),
    ("validate --data {}/of_latin.yaml", "latin.csv:2: not UTF-8 text"),
    # making a task file
    ("task init", "Missing argument 'data'"),
    ("task init {}/nowhere.csv", "nowhere.csv: there is no such file"),
    ("task init {}/data.xlsx", "cannot make a task from '.xlsx' files; use .csv, .tsv"),
    (
        "task init {}/data.csv --label klass",
        "--label klass: there is no such column; the columns are sentence, label",
    ),
    (
        "task init {}/column.csv",
        "which column is the label? The columns are sentence; none has few distinct values",
    ),
    (
        "task init {}/twotexts.csv",
        "first and second look like text. Set it with --text NAME (twice for pairs)",
    ),
    ("task init {}/one.csv", "the label column label has only one value (positive)"),
    (
        "task init {}/data.csv -o {}/task.yaml",
        "already exists: edit it, choose another name with -o, or add --force",
    ),
    # looking at results
    ("compare {}/results", "results is not the folder of a run: it contains no results.json"),
    ("compare {}/nowhere {}/nothing", "nowhere: there is no such folder; `tombola run` writes runs/NAME"),
    ("study {}/good.yaml --table {}/out.xlsx", "tables are written as .csv, .json or .parquet"),
    ("store rm nothing", "'nothing' is neither a run nor a stage"),
    ("list tasks zzz", "none of the tasks contains 'zzz'"),
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


def test_there_are_a_hundred_mistakes():
    assert len({typed for typed, _ in MISTAKES}) >= 100


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


def test_attacks_on_the_models_of_two_runs_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = [
        "runs/compress-a/model",
        "runs/compress-b/model",
        "runs/imp/tickets/imp_sparsity-0.5",
        "small.onnx",
    ]
    for place in places:
        Path(place).mkdir(parents=True)
    names = ["compress-a-model", "compress-b-model", "imp-imp_sparsity-0.5", "small.onnx", "bert"]
    assert [_name_of(place) for place in (*places, "me/bert")] == names
    monkeypatch.chdir(tmp_path / "runs" / "imp")
    assert _name_of("../compress-a/model") == "compress-a-model"
