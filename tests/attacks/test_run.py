"""The whole call: resuming after a kill, refusing another run's journal, reporting what was used."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.attacks.test_identity import CONTENT, PLAIN, texts
from tests.attacks.toys import resources
from tests.children import start_python
from tests.pipeline.running import plans
from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.attacks import DeepWordBug, MissingResource, Resources, attack
from tombola.errors import ModelError, TombolaError, UnknownName
from tombola.evaluation.evaluate import evaluate_split
from tombola.tasks import Task

pytestmark = pytest.mark.portable

EXAMPLES = [(text, i % 2) for i, text in enumerate(texts(30))]
TABLE = {word: {"film": 0.9, "cold": 0.8, "dull": 0.7, "warm": 0.6} for word in CONTENT}


def run(**settings):
    tokenizer = word_tokenizer([" ".join(CONTENT + PLAIN)])
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=2, seed=settings.pop("weights", 1))
    recipe = settings.pop("recipe", "textfooler")
    tools = settings.pop("resources", None) or resources(TABLE)
    return attack(model, tokenizer, EXAMPLES, recipe, resources=tools, **settings)


def untimed(report):
    return replace(report, seconds=0, rows=0, similarity_rows=0, resumed=0)


def kill_after(path: Path, count: int) -> None:
    """Run the attack in another process, and kill that process when it has finished `count` examples."""
    child = start_python(
        "-c", f"from tests.attacks.test_run import run_and_die; run_and_die({str(path)!r}, {count})"
    )
    child.join()
    assert child.exitcode == -signal.SIGKILL


def run_and_die(path: str, count: int) -> None:
    seen = []

    def progress(done, all_of_them, figures):
        seen.append(done)
        if len(seen) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    run(resume=path, lanes=4, progress=progress)


def test_a_killed_attack_goes_on_and_gives_the_same_report(tmp_path):
    whole = run()
    path = tmp_path / "kept" / "journal.jsonl"
    kill_after(path, 9)
    path.write_bytes(path.read_bytes() + b'{"index": 29, "original": ["to')  # torn by the kill
    reports: list[tuple[int, int, dict[str, float]]] = []
    again = run(resume=path, progress=lambda *report: reports.append(report))
    assert again.resumed == 9
    assert [done for done, _, _ in reports] == list(range(9, len(EXAMPLES) + 1))
    assert {of for _, of, _ in reports} == {len(EXAMPLES)}
    assert reports[-1][2] == {"under attack": again.summary()["accuracy_under_attack"]}
    assert untimed(again) == untimed(whole)
    finished = run(resume=path)
    assert finished.resumed == len(EXAMPLES)
    assert untimed(finished) == untimed(whole)
    assert finished.resources == again.resources == whole.resources
    assert finished.rows == again.rows == whole.rows
    assert len(path.read_text().splitlines()) == 1 + len(EXAMPLES)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"seed": 1}, "seed"),
        ({"weights": 2}, "model"),
        ({"query_budget": 9}, "query_budget"),
        ({"n": 29}, "examples"),
    ],
)
def test_a_journal_of_another_run_is_refused(tmp_path, changed, named):
    path = tmp_path / "journal.jsonl"
    run(recipe="random_substitution", resume=path)
    with pytest.raises(TombolaError, match=f"differs in {named}:"):
        run(recipe="random_substitution", resume=path, **changed)


def test_the_journal_of_an_attack_that_could_not_start_is_no_obstacle(tmp_path):
    path = tmp_path / "journal.jsonl"
    with pytest.raises(TombolaError, match="there is no such folder"):
        run(recipe="bert_attack", resources=Resources(mlm="./nowhere"), resume=path)
    assert run(recipe="random_substitution", resume=path).resumed == 0
    assert run(recipe="random_substitution", resume=path).resumed == len(EXAMPLES)


def test_damaged_lines_of_a_journal_are_done_again_and_doubled_ones_count_once(tmp_path, caplog):
    path = tmp_path / "journal.jsonl"
    whole = run(recipe="random_substitution", resume=path)
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    ruins = [b"".join([*lines[:3], b"oops\n", *lines[4:]]), content + lines[5], content[:-9]]
    for place in range(0, len(content), len(content) // 12):
        ruins.append(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    for ruin in ruins:
        path.write_bytes(ruin)
        again = run(recipe="random_substitution", resume=path)
        assert (untimed(again), again.rows) == (untimed(whole), whole.rows)
        assert len(path.read_bytes().splitlines()) >= 1 + len(EXAMPLES)
    assert "damaged lines are discarded" in caplog.text


def test_a_missing_masked_lm_is_reported_before_the_model_is_asked(world):
    with pytest.raises(MissingResource, match="BERT-Attack needs a masked language model"):
        attack(tiny("bert"), None, EXAMPLES, "bert_attack")
    with pytest.raises(MissingResource, match=r"in a recipe, under `attack`"):
        plans(world, attack={"recipes": ["deepwordbug", "bert_attack"]})


def test_settings_and_resources_are_in_the_report():
    report = run(recipe=DeepWordBug(max_edits=3), n=6, seed=4)
    assert (report.attack, report.settings, report.seed) == ("deepwordbug", {"max_edits": 3}, 4)
    assert len(report.examples) == 6
    assert report.rows == sum(example.num_queries for example in report.examples)
    assert "word neighbours" in run(n=4).resources
    json.dumps(report.summary(), allow_nan=False)


def test_unknown_attacks_and_impossible_budgets_are_refused():
    with pytest.raises(UnknownName, match="textfooler"):
        run(recipe="textfoler")
    with pytest.raises(TombolaError, match="query_budget"):
        run(query_budget=0)
    with pytest.raises(TombolaError, match="lanes: takes 1 or more, not 0"):
        run(lanes=0)


def test_without_an_encoder_similarity_is_not_measured():
    tools = Resources(encoder=None)
    report = run(recipe="deepwordbug", resources=tools)
    assert report.of("Successful")
    assert report.summary()["mean_similarity"] is None


def test_the_model_keeps_its_mode_and_any_family_will_do():
    tokenizer = word_tokenizer([" ".join(CONTENT + PLAIN)], segments=False)
    for family in ("roberta", "distilbert", "gpt2"):
        model = tiny(family, vocab_size=len(tokenizer), num_labels=2).train()
        report = attack(model, tokenizer, EXAMPLES[:8], "deepwordbug", resources=resources(TABLE))
        assert len(report.examples) == 8
        assert model.training


def test_a_decoder_needs_no_padding_token_of_its_own():
    tokenizer = word_tokenizer([" ".join(CONTENT + PLAIN)], segments=False)
    model = tiny("gpt2", vocab_size=len(tokenizer), num_labels=2)
    model.config.pad_token_id = tokenizer.pad_token_id
    expected = attack(model, tokenizer, EXAMPLES[:8], "deepwordbug", resources=resources(TABLE))
    model.config.pad_token_id = None
    found = attack(model, tokenizer, EXAMPLES[:8], "deepwordbug", resources=resources(TABLE))
    assert untimed(found) == untimed(expected)
    assert model.config.pad_token_id is None


def test_importing_the_package_leaves_torch_alone():
    code = "import sys, tombola.attacks; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def task_split(folder: Path, labels: list[str], merge: str = "{}"):
    """The examples as a task's split; their labels are the first and the second of `labels`."""
    rows = ({"text": text, "label": labels[label]} for (text,), label in EXAMPLES)
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "t.yaml").write_text(
        f"{{name: t, version: 1, text: text, labels: {labels}, merge: {merge}, metrics: [accuracy], "
        "source: {files: {dev: d.jsonl}}}"
    )
    return Task.from_file(folder / "t.yaml").load("dev")


@pytest.mark.parametrize(
    ("outputs", "merge"),
    [(["no", "yes"], "{}"), (["yes", "no"], "{}"), (["maybe", "yes", "never"], "{maybe: 'no', never: 'no'}")],
)
def test_outputs_are_taken_for_the_labels_that_the_model_names(tmp_path, outputs, merge):
    split = task_split(tmp_path, ["no", "yes"], merge)
    tokenizer = word_tokenizer([" ".join(CONTENT + PLAIN)])
    names = dict(enumerate(outputs))
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=len(outputs), seed=1)
    model.config.id2label, model.config.label2id = names, {name: place for place, name in names.items()}
    report = attack(model, tokenizer, split, "deepwordbug", resources=resources(TABLE))
    result = evaluate_split(model, tokenizer, split)
    assert report.summary()["clean_accuracy"] == result.scores["accuracy"].value
    assert [one.original_output for one in report.examples] == result.predictions.argmax(axis=1).tolist()
    assert report.labels == ["no", "yes"]


def test_a_model_of_other_labels_is_refused(tmp_path):
    split = task_split(tmp_path, ["no", "yes"])
    tokenizer = word_tokenizer([" ".join(CONTENT + PLAIN)])
    model = tiny("bert", vocab_size=len(tokenizer), num_labels=2)
    model.config.id2label, model.config.label2id = {0: "ham", 1: "spam"}, {"ham": 0, "spam": 1}
    with pytest.raises(ModelError, match="ham"):
        attack(model, tokenizer, split, "deepwordbug", resources=resources(TABLE))
