"""Texts with several labels: in one field, as a list, or in a column for each label."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from tests.words import word_tokenizer
from tombola.errors import DataError, RecipeError
from tombola.tasks import Task, collate_of, encode

LABELS = ["joy", "anger", "fear"]


def feelings(folder: Path, name: str, content: str, **changes: Any) -> Task:
    (folder / name).write_text(content)
    source = changes.pop("source", {})
    task = {
        "name": "feelings",
        "version": 1,
        "kind": "multi-label",
        "text": "text",
        "labels": LABELS,
        "metrics": ["micro_f1", "macro_f1", "subset_accuracy"],
        "source": {"files": {"train": name}, **source},
        **changes,
    }
    (folder / "feelings.yaml").write_text(yaml.safe_dump(task))
    return Task.from_file(folder / "feelings.yaml")


FORMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "separated": ("t.tsv", "text\tlabels\na\tjoy,fear\nb\t\nc\t 1 , 2\n", {}),
    "bars": (
        "t.csv",
        "text,emotions\na,joy|fear\nb,\nc,anger|fear\n",
        {"separator": "|", "map": {"labels": "emotions"}},
    ),
    "lists": (
        "t.jsonl",
        "".join(
            json.dumps({"text": text, "labels": labels}) + "\n"
            for text, labels in (("a", ["joy", "fear"]), ("b", []), ("c", [1, 2]))
        ),
        {},
    ),
    "columns": ("t.csv", "text,fear,joy,anger\na,1,1,0\nb,0,0,0\nc,1,0,true\n", {}),
    "columns of other names": (
        "t.csv",
        "text,a1,a2,a3\na,1,0,1\nb,0,0,0\nc,0,1,1\n",
        {"map": {"joy": "a1", "anger": "a2", "fear": "a3"}},
    ),
}


@pytest.mark.parametrize(("name", "content", "source"), FORMS.values(), ids=FORMS)
def test_forms_of_labels(tmp_path: Path, name: str, content: str, source: dict[str, Any]) -> None:
    split = feelings(tmp_path, name, content, source=source).load("train")
    assert split.texts == [("a",), ("b",), ("c",)]
    assert split.labels == [[1, 0, 1], [0, 0, 0], [0, 1, 1]]


BAD = {
    "unknown": (
        "text\tlabels\na\tjoy,hope\n",
        ":2: unknown label 'hope'; expected joy, anger, fear, separated by ','",
    ),
    "not separated so": ("text\tlabels\na\tjoy;fear\n", "set `source.separator`"),
    "no flag": ("text\tjoy\tanger\tfear\na\t1\t0\t2\n", ":2: column 'fear' has '2', expected 0 or 1"),
    "a label without a column": ("text\tjoy\tanger\na\t1\t0\n", "nor one for each label (joy, anger, fear)"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_bad_labels(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        feelings(tmp_path, "t.tsv", content).load("train")
    assert reason in str(caught.value)


def test_batches_have_a_row_of_real_flags(tmp_path: Path) -> None:
    split = feelings(tmp_path, "t.tsv", "text\tlabels\na b\tjoy,fear\nb\t\n").load("train")
    tokenizer = word_tokenizer(["a b"])
    data = encode(split, tokenizer, 8)
    batch = collate_of(split.task, tokenizer)([data[0], data[1]])
    torch.testing.assert_close(batch["labels"], torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))


def test_what_does_not_apply_says_so(tmp_path: Path) -> None:
    split = feelings(tmp_path, "t.tsv", "text\tlabels\na\tjoy\nb\t\n").load("train")
    with pytest.raises(DataError, match="multi-label task, which has no classes to balance"):
        split.sample(1, seed=0, balanced=True)
    with pytest.raises(RecipeError, match="merge: only work for tasks with one label per text"):
        feelings(tmp_path, "t.tsv", "", merge={"hope": "joy"})
    with pytest.raises(RecipeError, match=r"settings\.threshold: must be less than 1"):
        feelings(tmp_path, "t.tsv", "", settings={"threshold": 1})
