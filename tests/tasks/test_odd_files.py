"""Odd data files, as users have them: each is read as it is meant, or refused with what to do."""

import json
from pathlib import Path

import pytest

from tombola.errors import DataError, RecipeError
from tombola.tasks import unlabelled
from tombola.tasks.inferring import infer_task, init_task

ROWS = [(f"the film number {n} was {'fine' if n % 2 else 'dull'}", n % 2) for n in range(60)]


def csv_of(path: Path, labels: tuple[str, str] = ("no", "yes"), header: str = "text,label") -> Path:
    lines = [f'{text},"{labels[label]}"' for text, label in ROWS]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def test_a_task_file_is_used_for_its_own_data_only(tmp_path: Path) -> None:
    data = csv_of(tmp_path / "reviews.csv")
    infer_task(data)
    other = tmp_path / "reviews.tsv"
    other.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in ROWS))
    with pytest.raises(
        DataError, match=r"task file of reviews\.csv, not of reviews\.tsv: rename reviews\.tsv"
    ):
        infer_task(other)
    assert not infer_task(data).new


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("text,label", ("not\ngood", "good")),
        ("text,label", ("bad\x07", "good\x85")),
        ('text,"label\n(0 or 1)"', ("no", "yes")),
    ],
)
def test_line_breaks_and_control_characters_in_labels_and_names(
    tmp_path: Path, header: str, labels: tuple[str, str]
) -> None:
    task = infer_task(csv_of(tmp_path / "d.csv", labels, header)).task
    assert task.labels is not None
    assert set(task.labels) == {label.strip() for label in labels}
    assert sum(len(task.load(split)) for split in task.split_names()) == len(ROWS)


def test_a_file_name_with_a_colon(tmp_path: Path) -> None:
    task = infer_task(csv_of(tmp_path / "export 12:30.csv")).task
    assert len(task.load("train")) == 42


def test_few_numbers_are_split_as_told(tmp_path: Path) -> None:
    lines = [f"{text},{number / 7}" for number, (text, _) in enumerate(ROWS)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *lines, *lines]) + "\n")
    found = infer_task(tmp_path / "d.csv")
    assert found.notes[-1] == "split: 70% train, 10% validation, 20% test"
    sizes = {name: len(found.task.load(name)) for name in found.task.split_names()}
    assert sizes == {"train": 84, "validation": 12, "test": 24}


def test_a_first_line_for_spreadsheets_is_no_header(tmp_path: Path) -> None:
    lines = [f"{text};{label}" for text, label in ROWS]
    (tmp_path / "d.csv").write_text("\n".join(["sep=;", "text;label", *lines]) + "\n")
    with pytest.raises(
        DataError, match=r"d\.csv:1: the first line only tells Excel the delimiter: remove it"
    ):
        infer_task(tmp_path / "d.csv")


def test_labels_that_are_objects_are_refused(tmp_path: Path) -> None:
    rows = [json.dumps({"text": text, "label": {"name": label}}) for text, label in ROWS]
    (tmp_path / "d.jsonl").write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match="the label column label contains JSON objects: write plain labels"):
        infer_task(tmp_path / "d.jsonl")


def test_every_row_of_a_file_without_labels_is_an_example(tmp_path: Path) -> None:
    task = infer_task(csv_of(tmp_path / "d.csv")).task
    assert task.source.skip_empty
    (tmp_path / "new.csv").write_text("number,text\n1,fine\n2,   \n3,\n4,dull\n")
    assert unlabelled(task, tmp_path / "new.csv").texts == [("fine",), ("",), ("",), ("dull",)]


def test_a_folder_is_not_a_file_of_texts(tmp_path: Path) -> None:
    task = infer_task(csv_of(tmp_path / "d.csv")).task
    with pytest.raises(DataError, match="is a folder; name a file in it"):
        unlabelled(task, tmp_path)


def test_a_wrong_language_leaves_the_task_file_as_it_was(tmp_path: Path) -> None:
    data = csv_of(tmp_path / "d.csv")
    before = init_task(data, language="de").path.read_text()
    with pytest.raises(RecipeError, match=r"language: 'German' is not the code of a language, such as de"):
        init_task(data, language="German", replace=True)
    assert (tmp_path / "d.task.yaml").read_text() == before
