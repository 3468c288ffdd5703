"""The out-of-distribution and adversarial companions in the layouts they are published in."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tombola.errors import DataError, RecipeError
from tombola.recipe.builtin import find_recipe
from tombola.recipe.grid import expand
from tombola.recipe.reading import load_recipe
from tombola.search.learned import Learned
from tombola.tasks import Split, Task
from tombola.tasks.targets import find_target

DATA = os.environ.get("TOMBOLA_DATA")


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOMBOLA_DATA", raising=False)


def written(folder: Path, name: str, rows: list[list[str]] | list[dict[str, Any]] | dict[str, Any]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, dict):
        path.write_text(json.dumps(rows))
    elif isinstance(rows[0], dict):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("".join("\t".join(row) + "\n" for row in rows))


def load(name: str, split: str, folder: Path) -> Split:
    return Task.named(name).load(split, folder=folder)


def test_hans(tmp_path: Path) -> None:
    header = [
        "gold_label",
        "sentence1_parse",
        "sentence1",
        "sentence2",
        "pairID",
        "heuristic",
        "subcase",
        "template",
    ]
    rows = [
        [
            "non-entailment",
            "( )",
            "The cat saw the dog .",
            "The dog saw the cat .",
            "ex7",
            "lexical_overlap",
            "s",
            "t",
        ],
        ["entailment", "( )", "The cat and the dog ran .", "The cat ran .", "ex8", "subsequence", "s", "t"],
    ]
    written(tmp_path, "hans/heuristics_evaluation_set.txt", [header, *rows])
    split = load("hans", "validation", tmp_path)
    assert split.ids == ["ex7", "ex8"]
    assert split.labels == [1, 0]
    assert split.texts[0] == ("The cat saw the dog .", "The dog saw the cat .")
    assert split.columns == {"heuristic": ["lexical_overlap", "subsequence"]}


@pytest.mark.parametrize(
    ("task", "file"), [("paws_wiki", "paws/dev.tsv"), ("paws_qqp", "paws_qqp/dev_and_test.tsv")]
)
def test_paws(tmp_path: Path, task: str, file: str) -> None:
    written(
        tmp_path,
        file,
        [["id", "sentence1", "sentence2", "label"], ["5", "a to b", "b to a", "0"], ["6", "a", "a", "1"]],
    )
    split = load(task, "validation", tmp_path)
    assert (split.ids, split.labels) == (["5", "6"], [0, 1])
    assert Task.named(task).labels == Task.named("qqp").labels
    assert Task.named(task).metrics == ["accuracy", "weighted_f1"]


@pytest.mark.parametrize(
    "row",
    [
        {"id": 1, "gold_label": "NOT ENOUGH INFO", "evidence": "E .", "claim": "C .", "weight": 0.3},
        {"id": 1, "label": "NOT ENOUGH INFO", "evidence": "E .", "claim": "C ."},
        {"id": 1, "gold_label": "NOT ENOUGH INFO", "sentence1": "E .", "sentence2": "C ."},
    ],
    ids=["gold", "plain", "sentences"],
)
def test_fever_repeats_its_ids(tmp_path: Path, row: dict[str, Any]) -> None:
    written(tmp_path, "fever/fever.train.jsonl", [row, row])
    split = load("fever", "train", tmp_path)
    assert split.ids == ["0", "1"]
    assert split.labels == [2, 2]
    assert split.texts[0] == ("E .", "C .")


@pytest.mark.parametrize("key", ["evidence", "evidence_sentence"])
@pytest.mark.parametrize("below", ["", "symmetric_v0.2/"])
def test_symmetric(tmp_path: Path, key: str, below: str) -> None:
    rows = [{"id": "7000002", "label": "REFUTES", "claim": "C .", key: "E ."}]
    written(tmp_path, f"fever_symmetric/{below}fever_symmetric_test.jsonl", rows)
    split = load("fever_symmetric_v2", "test", tmp_path)
    assert (split.ids, split.labels, split.texts) == (["7000002"], [1], [("E .", "C .")])
    assert Task.named("fever_symmetric_v2").labels == Task.named("fever").labels


def test_advglue_has_all_its_tasks_in_one_file(tmp_path: Path) -> None:
    content = {
        "sst2": [{"idx": 3, "sentence": "fine .", "label": 1, "method": "textbugger"}],
        "mnli-mm": [{"idx": 0, "premise": "P", "hypothesis": "H", "label": 2}],
    }
    written(tmp_path, "advglue/dev.json", content)
    split = load("advglue_sst2", "validation", tmp_path)
    assert (split.ids, split.labels, split.columns) == (["3"], [1], {"method": ["textbugger"]})
    split = load("advglue_mnli_mm", "validation", tmp_path)
    assert (split.texts, split.labels, split.columns) == ([("P", "H")], [2], {})
    with pytest.raises(DataError, match=r"dev\.json: expected a JSON object with the key 'rte'"):
        load("advglue_rte", "validation", tmp_path)


@pytest.mark.parametrize("name", ["sst2", "qqp", "mnli", "qnli", "rte", "fever"])
def test_companions_have_the_labels_of_their_task(name: str) -> None:
    task = Task.named(name)
    for other in map(Task.named, task.companions.ood + task.companions.adversarial):
        assert len(other.text) == len(task.text)
        merged = [other.merge.get(label, label) for label in task.labels or ()]
        assert set(merged) == set(other.labels or ())
        assert other.merge or other.labels == task.labels


WRONG = {
    "merge into nothing": ({"merge": {"c": "x"}}, "merge"),
    "merge of a label": ({"merge": {"a": "b"}}, "merge"),
    "groups of numbers": (
        {"labels": None, "kind": "regression", "metrics": ["pearson"], "groups": ["g"]},
        "groups",
    ),
}


@pytest.mark.parametrize(("changes", "reason"), WRONG.values(), ids=WRONG)
def test_wrong_groups_and_merges(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    content = {
        "name": "mine",
        "version": 1,
        "text": "t",
        "labels": ["a", "b"],
        "metrics": ["accuracy"],
        "source": {"files": {"train": "t.tsv"}},
    }
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps({**content, **changes}))
    with pytest.raises(RecipeError, match=reason):
        Task.from_file(path)


REAL = {
    ("hans", "validation"): (10000, 5000),
    ("paws_wiki", "validation"): (1000, None),
    ("fever_symmetric_v2", "test"): (712, 356),
    ("fever_symmetric_v2", "validation"): (708, 354),
    ("advglue_sst2", "validation"): (148, None),
    ("advglue_mnli_mm", "validation"): (162, None),
}


@pytest.mark.skipif(DATA is None, reason="TOMBOLA_DATA names no folder with the companions")
@pytest.mark.parametrize(("name", "split"), REAL)
def test_real_companions(name: str, split: str) -> None:
    rows, ones = REAL[name, split]
    loaded = Task.named(name).load(split, folder=DATA)
    assert len(loaded) == rows
    assert ones is None or loaded.labels.count(1) == ones


def test_a_companions_name_alone_means_its_published_split(tmp_path: Path) -> None:
    """SRNets reports PAWS-wiki and Symmetric v2 on their test sets; dev of the latter may be trained on."""
    assert find_target("fever_symmetric_v2", "fever") == ("fever_symmetric_v2", "test")
    assert find_target("fever_symmetric_v2/validation", "fever") == ("fever_symmetric_v2", "validation")
    assert find_target("fever_symmetric_v1", "fever") == ("fever_symmetric_v1", "validation")
    assert find_target("paws_wiki", "qqp") == ("paws_wiki", "test")
    assert find_target("hans", "mnli") == ("hans", "validation")
    written(tmp_path, "paws/dev.tsv", [["id", "sentence1", "sentence2", "label"], ["5", "a", "b", "0"]])
    with pytest.raises(DataError, match=r"no file for paws_wiki/test .*There is paws_wiki/validation\."):
        load("paws_wiki", "test", tmp_path)


def test_the_upper_bound_of_fever_trains_on_dev_and_is_scored_on_test() -> None:
    recipe = expand(load_recipe(find_recipe("srnets/upper_bound"), ["task=fever"]))[0].recipe
    assert isinstance(recipe.search, Learned)
    mixed = [find_target(one.on, "fever") for one in recipe.search.mix]
    scored = [find_target(on, "fever") for on in recipe.evaluate.on]
    assert mixed == [("fever_symmetric_v2", "validation")]
    assert ("fever_symmetric_v2", "test") in scored
    assert not set(mixed) & set(scored)
    assert [one.times for one in recipe.search.mix] == [10]


def test_snli_leaves_out_what_the_annotators_disagree_on(tmp_path: Path) -> None:
    rows = [
        {"pairID": str(i), "gold_label": label, "sentence1": f"P {i}", "sentence2": "H"}
        for i, label in enumerate(["neutral", "-", "contradiction", "-", "entailment"])
    ]
    written(tmp_path, "snli_1.0/snli_1.0_dev.jsonl", rows)
    split = load("snli", "validation", tmp_path)
    assert (split.ids, split.labels, split.dropped) == (["0", "2", "4"], [1, 2, 0], 0)


def test_scitail_has_no_header(tmp_path: Path) -> None:
    rows = [["P .", "H .", "entails"], ["Q", "R", "neutral"]]
    written(tmp_path, "SciTailV1.1/tsv_format/scitail_1.0_train.tsv", rows)
    split = load("scitail", "train", tmp_path)
    assert (split.texts, split.labels) == ([("P .", "H ."), ("Q", "R")], [1, 0])
