import csv
import json
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tombola.attacks.report import AttackReport, Example
from tombola.errors import DataError, TombolaError
from tombola.evaluation.intervals import wilson
from tombola.foundations.checksums import write_checksums
from tombola.tasks import Task

HOSTILE = "<script>alert('x')</script> & \"good\" film </p>"


def example(index, result, *, original=("a good film",), changes=None, queries=10, **more):
    truth, before = 1, 0 if result == "Skipped" else 1
    fields = {
        "index": index,
        "original": original,
        "changes": changes or {},
        "ground_truth_output": truth,
        "original_output": before,
        "perturbed_output": 0 if result == "Successful" else before,
        "original_score": 0.25,
        "perturbed_score": 0.75,
        "num_queries": queries,
        "result_type": result,
    }
    return Example(**fields | more)


def report(examples, columns=("sentence",)):
    return AttackReport(
        attack="textfooler",
        settings={"candidates": 50},
        examples=examples,
        columns=list(columns),
        labels=["negative", "positive"],
        seed=3,
        query_budget=None,
        resources={"word neighbours": "toy"},
        seconds=2.0,
        rows=40,
    )


MIXED = [
    example(0, "Successful", changes={1: "decent"}, queries=10, similarity=0.9),
    example(2, "Failed", queries=30),
    example(5, "Skipped", queries=1),
    example(7, "Successful", changes={1: "fine", 2: "movie"}, queries=20, similarity=0.5),
]


def test_the_figures():
    summary = report(MIXED).summary()
    assert summary["clean_accuracy"] == 3 / 4
    assert summary["accuracy_under_attack"] == 1 / 4
    assert summary["accuracy_under_attack_interval"] == list(wilson(1, 4))
    assert summary["success_rate"] == 2 / 3
    assert summary["mean_queries"] == 20  # skipped examples were not attacked
    assert summary["mean_changed_words"] == 1.5
    assert summary["mean_changed_share"] == pytest.approx(0.5)
    assert summary["mean_similarity"] == pytest.approx(0.7)
    assert summary["rows_per_second"] == 20


def test_the_curve_counts_a_broken_text_as_wrong_from_the_words_on_that_it_took():
    curve = report(MIXED).by_changed_words()
    assert [point.words for point in curve] == [0, 1, 2, 3, 4, 5, 10, 20, None]
    assert [point.accuracy for point in curve] == [3 / 4, 2 / 4, *[1 / 4] * 7]
    assert (curve[1].low, curve[1].high) == wilson(2, 4)
    summary = report(MIXED).summary()
    assert curve[0].accuracy == summary["clean_accuracy"]
    assert curve[-1].accuracy == summary["accuracy_under_attack"]
    assert summary["by_changed_words"][2] == {
        "words": 2,
        "accuracy": 1 / 4,
        "low": wilson(1, 4)[0],
        "high": wilson(1, 4)[1],
    }


def test_figures_that_cannot_be_had_are_none():
    summary = report([example(0, "Skipped")]).summary()
    assert summary["success_rate"] is summary["mean_queries"] is summary["mean_similarity"] is None
    json.dumps(summary, allow_nan=False)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("report.json", '"seed": 3', '"seed": 3, "former": 1'),
        ("examples.jsonl", '"num_queries"', '"queries"'),
        ("examples.jsonl", '"changes": {"1": "decent"}', '"changes": []'),
    ],
)
def test_a_report_of_another_version_is_refused(tmp_path, file, old, new):
    path = report(MIXED).save(tmp_path) / file
    path.write_text(path.read_text().replace(old, new))
    write_checksums(tmp_path, only=("report.json", "examples.jsonl"))
    with pytest.raises(TombolaError, match="not contain an attack report of this version: attack the model"):
        AttackReport.load(tmp_path)


def test_what_was_saved_is_loaded(tmp_path):
    hostile = example(9, "Successful", original=(HOSTILE, "zwei\nZeilen\t\ud800"), changes={3: "x\ty"})
    saved = report([hostile, *[example(i, "Failed", original=("a", "b")) for i in range(2)]], ("one", "two"))
    assert AttackReport.load(saved.save(tmp_path)) == saved


def test_the_csv_has_textattacks_columns_and_marks(tmp_path):
    report(MIXED).save(tmp_path)
    with (tmp_path / "examples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["original_text"] == "a [[good]] film"
    assert rows[0]["perturbed_text"] == "a [[decent]] film"
    assert rows[3]["perturbed_text"] == "a [[fine]] [[movie]]"
    assert [row["result_type"] for row in rows] == ["Successful", "Failed", "Skipped", "Successful"]
    names = "original_text perturbed_text original_score perturbed_score original_output perturbed_output"
    assert list(rows[0])[:9] == [*names.split(), "ground_truth_output", "num_queries", "result_type"]
    assert float(rows[0]["perturbed_score"]) == 0.75


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.marked, self.text = [""], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data
        if self.tags[-1] in ("del", "ins"):
            self.marked.append((self.tags[-1], data))
            self.tags.append("")


def test_the_page_marks_changed_words_and_escapes_the_rest(tmp_path):
    attacked = example(0, "Successful", original=(HOSTILE,), changes={4: "<b>", 0: "scrıpt"})
    page = Page((report([attacked]).save(tmp_path) / "diff.html").read_text(encoding="utf-8"))
    assert not {"script", "b"} & set(page.tags)
    assert HOSTILE in page.text
    assert page.marked == [("del", "script"), ("del", "good"), ("ins", "scrıpt"), ("ins", "<b>")]


def test_the_page_has_the_curve_and_says_that_it_is_an_upper_bound(tmp_path):
    text = Page((report(MIXED).save(tmp_path) / "diff.html").read_text(encoding="utf-8")).text
    assert " ".join(text.split()).count("any number25.0 %") == 1
    assert "upper bounds" in text


def test_pairs_name_their_columns_on_the_page(tmp_path):
    pair = example(0, "Successful", original=("one two", "three"), changes={2: "drei"})
    folder = report([pair], ("premise", "hypothesis")).save(tmp_path)
    text = (folder / "diff.html").read_text(encoding="utf-8")
    assert '<span class="column">hypothesis</span>' in text
    with (folder / "examples.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["perturbed_text"] == "one two<SPLIT>[[drei]]"


def test_successes_become_a_task(tmp_path):
    odd = example(9, "Successful", original=("tab\tand\nline “quoted”",), changes={1: "or"})
    path = report([*MIXED, odd]).to_task(tmp_path / "new", "adversarial", split="train")
    split = Task.from_file(path).load("train")
    assert split.texts == [("a decent film",), ("a fine movie",), ("tab\tor\nline “quoted”",)]
    assert split.labels == [1, 1, 1]
    assert split.ids == ["textfooler-0", "textfooler-7", "textfooler-9"]
    numbers = replace(report(MIXED), labels=["no", "1e3"]).to_task(tmp_path / "numbers", "adversarial")
    assert Task.from_file(numbers).labels == ["no", "1e3"]
    assert Task.from_file(numbers).load("validation").labels == [1, 1]
    with pytest.raises(DataError, match="changed no label"):
        report([example(0, "Failed")]).to_task(tmp_path, "none")


def test_a_session_shows_the_figures_and_not_every_example():
    shown = "AttackReport(textfooler: 4 examples, 3 correct before the attack, 1 after)"
    assert repr(report(MIXED)) == shown
    assert repr(report([])).endswith("0 correct before the attack, 0 after)")
    assert repr(Task.named("reviews").load("test", limit=7)) == "Split(reviews/test: 7 examples)"
