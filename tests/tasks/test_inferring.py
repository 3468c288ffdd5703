"""Tasks from nothing but a data file."""

import json
from collections import Counter
from pathlib import Path
from unicodedata import normalize

import pytest
import yaml

from tombola.errors import DataError
from tombola.tasks import Task
from tombola.tasks.inferring import infer_task, init_task, task_file_of

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def sentence(number: int) -> str:
    return f"{WORDS[number % 10]} is a “quoted”, word; and {number} é 漢 a number"


def csv_of(path: Path, rows: list[tuple[str, ...]], header: str) -> Path:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    rows = [(str(n), sentence(n), "good" if n % 4 else "bad") for n in range(400)]
    rows += [("400", "", "good"), ("401", sentence(401), " ")]
    return csv_of(tmp_path / "reviews.csv", rows, "id,review,sentiment")


def test_columns_labels_and_missing_cells(reviews: Path) -> None:
    found = infer_task(reviews)
    assert found.task.text == ["text"]
    assert found.task.labels == ["bad", "good"]
    assert found.task.source.map == {"text": ["review"], "label": ["sentiment"]}
    assert found.notes == (
        "text: review",
        "label: sentiment",
        "2 labels: bad, good; the most common one, good, in 75%",
        "400 examples; rows skipped, without a text or a label: 2",
        "split: 70% train, 10% validation, 20% test",
    )
    train = found.task.load("train")
    assert sum(len(found.task.load(name)) for name in ("train", "validation", "test")) == 400
    assert all("漢" in text for (text,) in train.texts)


def test_splits_are_stratified_and_keep_equal_texts_together(tmp_path: Path) -> None:
    rows = [(sentence(n % 150), "rare" if n % 150 < 30 else "usual") for n in range(450)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    splits = {name: task.load(name) for name in ("train", "validation", "test")}
    texts = {name: set(split.texts) for name, split in splits.items()}
    assert not texts["train"] & texts["test"]
    assert not texts["train"] & texts["validation"]
    assert not texts["validation"] & texts["test"]
    for name, share in (("train", 0.7), ("validation", 0.1), ("test", 0.2)):
        counts = Counter(splits[name].labels)
        assert counts[0] == pytest.approx(share * 90, abs=3)  # three copies of 30 texts
        assert counts[1] == pytest.approx(share * 360, abs=3)


def test_the_task_file_is_used_when_it_is_there(reviews: Path) -> None:
    path = infer_task(reviews).path
    assert path == task_file_of(reviews) == reviews.with_name("reviews.task.yaml")
    path.write_text(path.read_text().replace(", macro_f1]", "]"))
    again = infer_task(reviews)
    assert not again.new
    assert again.task.metrics == ["accuracy"]
    again = infer_task(reviews, ("review",), "sentiment")  # the columns that it names
    assert (again.new, again.task.metrics) == (False, ["accuracy"])


def test_other_columns_replace_a_task_file_unless_it_was_edited(tmp_path: Path) -> None:
    rows = [(sentence(n), sentence(n + 1), "good" if n % 4 else "bad") for n in range(100)]
    data = csv_of(tmp_path / "d.csv", rows, "title,body,label")
    path = infer_task(data).path
    assert Task.from_file(path).source.map == {"text": ["body"]}
    assert infer_task(data, ("title",)).new
    assert Task.from_file(path).source.map == {"text": ["title"]}
    path.write_text(path.read_text() + "language: de\n")
    with pytest.raises(
        DataError, match=r"reads other columns \(title, label\) and has been edited: change the"
    ):
        infer_task(data, ("title", "body"))
    assert Task.from_file(path).language == "de"


def test_every_key_of_the_task_file_has_a_comment(reviews: Path) -> None:
    lines = infer_task(reviews).path.read_text(encoding="utf-8").splitlines()
    keys = [n for n, line in enumerate(lines) if line and not line.strip().startswith("#")]
    alone = [lines[n] for n in keys if not lines[n - 1].strip().startswith("#")]
    assert alone == [
        "  validation: {of: train, share: 0.1, stratified: true}",
        "  test: {of: train, share: 0.2, stratified: true}",
    ]
    assert "# text: review" in lines
    assert "  files: {train: reviews.csv}" in lines


def test_init_writes_where_it_is_told_and_replaces_only_by_force(reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    moved = reviews.rename(tmp_path / "below" / "reviews [1].csv")
    found = init_task(moved, path=tmp_path / "sentiment.yaml")
    assert found.task.name == "sentiment"
    assert len(Task.from_file(tmp_path / "sentiment.yaml").load("train")) == pytest.approx(280, abs=2)
    with pytest.raises(DataError, match=r"sentiment.yaml already exists: edit it, .* or add --force"):
        init_task(moved, path=tmp_path / "sentiment.yaml")
    assert init_task(moved, path=tmp_path / "sentiment.yaml", label="id", replace=True).task.labels is None
    with pytest.raises(DataError, match="a task file must be in the folder of its data, or in one above it"):
        init_task(moved, path=tmp_path / "other" / "task.yaml")
    with pytest.raises(DataError, match=r"must end in \.yaml"):
        init_task(moved, path=tmp_path / "task.json")


@pytest.mark.parametrize(
    ("encoding", "found"),
    [("cp1252", "cp1252"), ("utf-16-le", "utf-16-le"), ("utf-16", None), ("utf-8", None)],
)
def test_delimiter_and_encoding_are_recognised_and_written_down(
    tmp_path: Path, encoding: str, found: str | None
) -> None:
    rows = [f'"naïve; {WORDS[n % 10]}, word {n}";{"good" if n % 2 else "bad"}' for n in range(100)]
    path = tmp_path / "d.csv"
    path.write_bytes("\r\n".join(["text;label", *rows]).encode(encoding))
    inferred = infer_task(path)
    assert inferred.task.source.delimiter == ";"
    assert inferred.task.source.encoding == found
    assert ("delimiter: ';'" in inferred.notes, f"encoding: {found!r}" in inferred.notes) == (
        True,
        bool(found),
    )
    assert all(text.startswith("naïve; ") for (text,) in inferred.task.load("train").texts)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (
            ["positive", "negative", "positive,funny"],
            "100 rows seem to have several labels, such as 'positive,funny'",
        ),
        (["a; b", "b; c", "a; c", "a; b; c"], "300 rows seem to have several labels, such as 'a; b'"),
        (["Albany, NY", "New York, NY", "Boston, MA"], None),
    ],
)
def test_several_labels_in_a_cell_are_told(tmp_path: Path, labels: list[str], told: str | None) -> None:
    rows = [(sentence(n), labels[n % len(labels)]) for n in range(300)]
    notes = infer_task(csv_of(tmp_path / "moods.csv", rows, "text,label")).notes
    assert [note.partition(":")[0] for note in notes if "several labels" in note] == ([told] if told else [])


def test_many_sets_of_labels_are_not_taken_for_classes(tmp_path: Path) -> None:
    rows = [(sentence(n), ",".join(f"tag{bit}" for bit in range(9) if n >> bit & 1)) for n in range(1, 400)]
    with pytest.raises(DataError, match=r"has 399 different values, more than 200: .* of kind multi-label"):
        infer_task(csv_of(tmp_path / "tags.csv", rows, "text,label"))


def test_labels_that_other_programs_write_for_empty_cells_are_told(tmp_path: Path) -> None:
    rows = [(sentence(n), ("bad", "good", "NaN")[n % 3]) for n in range(90)]
    notes = infer_task(csv_of(tmp_path / "films.csv", rows, "text,label")).notes
    assert "30 rows have the label NaN: if that means no label, leave the cell empty" in notes


def test_a_file_without_a_readable_row_names_the_reason(tmp_path: Path) -> None:
    # Regression: it was said to contain no rows.
    (tmp_path / "films.tsv").write_text("text\tlabel\n" + "a film\twith tabs\tgood\n" * 2)
    with pytest.raises(
        DataError, match=r"films\.tsv:2: 3 fields instead of 2 \(text, label\): put texts that"
    ):
        infer_task(tmp_path / "films.tsv")


def test_doubtful_rows_and_rare_labels_are_told(tmp_path: Path) -> None:
    rows = [(sentence(n), "rare" if n < 3 else "usual") for n in range(100)]
    path = csv_of(tmp_path / "d.csv", rows, "text,label")
    path.write_text(path.read_text() + "one,two,three\n")
    notes = "\n".join(infer_task(path).notes)
    assert "1 row cannot be read, at" in notes
    assert "d.csv:102: 3 fields instead of 2" in notes
    assert "fewer than 20 examples: rare (3)" in notes
    (tmp_path / "l.jsonl").write_text('{"text": "a b c", "labels": ["x"]}\n' * 3)
    with pytest.raises(DataError, match="contains lists: write a task file of kind multi-label"):
        infer_task(tmp_path / "l.jsonl")


def test_an_empty_holdout_is_told(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "d.csv", [("a b c", "x"), ("d e f", "y"), ("g h i", "x")], "text,label")
    with pytest.raises(
        DataError, match=r"d/validation is empty: none of the 3 examples .* change the shares"
    ):
        infer_task(path).task.load("validation")


@pytest.mark.parametrize(("each", "test"), [(5, 1), (10, 2), (15, 3), (25, 5), (35, 7)])
def test_the_test_data_have_a_fifth_of_every_class(tmp_path: Path, each: int, test: int) -> None:
    rows = [(sentence(n), "xy"[n % 2]) for n in range(2 * each)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    assert Counter(task.load("test").labels) == {0: test, 1: test}


def test_pairs_and_numbers(tmp_path: Path) -> None:
    rows = [
        {"premise": sentence(n), "hypothesis": sentence(n + 1), "score": n / 7, "split": "x"}
        for n in range(60)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = infer_task(path).task
    assert (task.kind, task.text, task.metrics) == (
        "regression",
        ["first", "second"],
        ["pearson", "spearman"],
    )
    assert len(task.load("test").texts[0]) == 2


def test_numbers_with_a_decimal_comma_are_numbers(tmp_path: Path) -> None:
    numbers = [n / 8 - 2 for n in range(60)]
    lines = [
        f"{WORDS[n % 10]} is rated {n};{str(number).replace('.', ',')}" for n, number in enumerate(numbers)
    ]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(["text;score", *lines]) + "\n")
    found = infer_task(path)
    assert (found.task.kind, found.task.source.decimal) == ("regression", ",")
    assert "regression: numbers from -2 to 5.375" in found.notes
    assert (
        sorted(label for name in found.task.split_names() for label in found.task.load(name).labels)
        == numbers
    )
    with_points = csv_of(tmp_path / "p.csv", [(sentence(n), str(n / 8)) for n in range(60)], "text,score")
    assert infer_task(with_points).task.source.decimal == "."


@pytest.mark.parametrize(
    ("values", "labels"),
    [(["3,0", "4,0", "5,0"], ["3,0", "4,0", "5,0"]), (["1,2,3", "1,2", "3"], ["3", "1,2", "1,2,3"])],
)
def test_few_whole_numbers_and_lists_are_classes_with_commas_too(
    tmp_path: Path, values: list[str], labels: list[str]
) -> None:
    data = csv_of(tmp_path / "d.csv", [(sentence(n), values[n % 3]) for n in range(60)], "text,label")
    assert infer_task(data).task.labels == labels


@pytest.mark.parametrize("values", [["1,234", "12", "3,100"], ["1,5", "2.5", "3"], ["1,234,567", "2,5", "3"]])
def test_commas_that_are_decimal_or_not_are_refused(tmp_path: Path, values: list[str]) -> None:
    data = csv_of(tmp_path / "d.csv", [(sentence(n), values[n % 3]) for n in range(60)], "text,score")
    with pytest.raises(DataError, match=r"the label column score contains numbers .*comma"):
        infer_task(data)
    assert not task_file_of(data).exists()


def test_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    rows = {"text": [sentence(n) for n in range(50)] + [None], "label": [n % 3 for n in range(51)]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "d.parquet")
    task = infer_task(tmp_path / "d.parquet").task
    assert task.labels == ["0", "1", "2"]
    assert sum(len(task.load(name)) for name in task.split_names()) == 50
    numbers = {"text": rows["text"], "label": [n / 7 if n % 2 else float("nan") for n in range(51)]}
    parquet.write_table(pyarrow.table(numbers), tmp_path / "n.parquet")
    assert (
        "25 examples; rows skipped, without a text or a label: 26" in infer_task(tmp_path / "n.parquet").notes
    )
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"bad.parquet: not a Parquet file that can be read"):
        infer_task(tmp_path / "bad.parquet")


def test_writings_of_one_label_are_one_label(tmp_path: Path) -> None:
    rows = [(sentence(n), ["Yes", "yes", "no"][n % 3]) for n in range(60)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    assert [label.casefold() for label in task.labels] == ["no", "yes"]
    assert "the most common one, Yes, in 67%" in task_file_of(tmp_path / "d.csv").read_text()
    assert set(task.load("train").labels) == {0, 1}


def test_labels_that_look_the_same_are_one_label(tmp_path: Path) -> None:
    rows = [(sentence(n), ["caf\u00e9", "cafe\u0301", "bar"][n % 3]) for n in range(60)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    assert [normalize("NFC", label) for label in task.labels or []] == ["bar", "caf\u00e9"]
    assert sum(task.load("train").labels) == 28


def test_codes_with_underscores_are_no_numbers(tmp_path: Path) -> None:
    rows = [(sentence(n), f"{n % 13}_{n % 2}") for n in range(260)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    assert (task.kind, len(task.labels or [])) == ("classification", 26)


def test_a_label_that_pandas_writes_as_nan_is_missing(tmp_path: Path) -> None:
    rows = [{"text": sentence(n), "label": ["x", "y", float("nan")][n % 3]} for n in range(60)]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = infer_task(path)
    assert found.task.labels == ["x", "y"]
    assert "40 examples; rows skipped, without a text or a label: 20" in found.notes
    assert sum(len(found.task.load(name)) for name in found.task.split_names()) == 40


def test_labels_that_yaml_takes_for_numbers_stay_labels(tmp_path: Path) -> None:
    names = ["1e3", "2E-5", "no", "0x1F", "1_000", "2024-01-01"]
    rows = [(sentence(n), names[n % 6]) for n in range(240)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,label")).task
    assert sorted(task.labels or []) == sorted(names)
    split = task.load("train")
    assert {task.labels[label] for label in split.labels} == set(names)


def test_numbers_that_are_not_places_mean_labels(tmp_path: Path) -> None:
    rows = [(sentence(n), ["1", "2", "5"][n % 3]) for n in range(60)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,stars")).task
    assert task.labels == ["1", "2", "5"]
    train = task.load("train")
    assert all(
        int(text.split(" and ")[1].split()[0]) % 3 == label
        for (text,), label in zip(train.texts, train.labels, strict=True)
    )


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        (
            "a,b,c",
            {},
            r"which column is the text\? The columns are a, b, c; b look like text|which column is the label",
        ),
        (
            "a,text,c",
            {},
            r"which column is the label\? The columns are a, text, c; none has few distinct values. Set it with --l",
        ),
        (
            "a,text,label",
            {"text": ("body",)},
            r"--text body: there is no such column; the columns are a, text, label",
        ),
        ("a,text,label", {"label": "klass"}, r"--label klass: there is no such column"),
        ("a,text,label", {"text": ("text", "text")}, r"--text text: is given twice"),
        (
            "a,text,label",
            {"text": ("text", "a", "label")},
            r"--text: takes one column, or two for pairs, not 3",
        ),
        ("a,text,label", {"text": ("text",), "label": "text"}, r"--label text: is also the text"),
        ("text,text,label", {}, r"several columns are called 'text'"),
    ],
)
def test_what_cannot_be_told_is_asked(tmp_path: Path, header: str, options: dict, message: str) -> None:
    rows = [(f"id{n}", sentence(n), f"v{n}") for n in range(40)]
    with pytest.raises(DataError, match=message):
        infer_task(csv_of(tmp_path / "d.csv", rows, header), **options)


def test_a_label_of_one_value_or_too_many_is_refused(tmp_path: Path) -> None:
    path = csv_of(tmp_path / "d.csv", [(sentence(n), "same") for n in range(40)], "text,label")
    with pytest.raises(DataError, match=r"the label column label has only one value \(same\): add examples"):
        infer_task(path)
    path = csv_of(tmp_path / "e.csv", [(sentence(n), f"v{n}") for n in range(400)], "text,label")
    with pytest.raises(DataError, match="has 400 different values, more than 200"):
        infer_task(path)
    with pytest.raises(DataError, match=r"cannot make a task from '.xlsx' files; use .csv, .tsv"):
        infer_task_of(tmp_path)


def infer_task_of(folder: Path) -> None:
    (folder / "d.xlsx").write_bytes(b"")
    infer_task(folder / "d.xlsx")


@pytest.mark.parametrize("stranger", ["nan", "inf"])
def test_what_is_no_number_among_numbers_is_named(tmp_path: Path, stranger: str) -> None:
    rows = [(sentence(n), str(n % 30)) for n in range(60)] + [(sentence(60), stranger)]
    data = csv_of(tmp_path / "scores.csv", rows, "text,score")
    with pytest.raises(DataError, match=f"score contains numbers, but also '{stranger}'"):
        infer_task(data)
    assert not task_file_of(data).exists()


def test_labels_of_skipped_rows_do_not_count(tmp_path: Path) -> None:
    rows = [(sentence(n), str(n % 2)) for n in range(60)] + [("", "other")] * 60
    found = infer_task(csv_of(tmp_path / "some.csv", rows, "text,label"))
    assert found.task.labels == ["0", "1"]
    assert "2 labels: 0, 1; the most common one, 0, in 50%" in found.notes
    assert len(found.task.load("train")) == 42


def test_a_file_without_a_whole_row_is_refused(tmp_path: Path) -> None:
    data = csv_of(tmp_path / "empty.csv", [("", str(n % 2)) for n in range(60)], "text,label")
    with pytest.raises(DataError, match=r"which column is the text\? The columns are text \(empty\), label"):
        infer_task(data)


def test_ids_that_repeat_are_no_ids(tmp_path: Path) -> None:
    rows = [(str(n // 2), sentence(n), "ab"[n % 2]) for n in range(60)]
    found = infer_task(csv_of(tmp_path / "visits.csv", rows, "id,text,label"))
    assert "id: not unique, so examples are identified by their position" in found.notes
    assert sum(len(found.task.load(name)) for name in ("train", "validation", "test")) == 60


@pytest.mark.parametrize("labels", [["good", "bad"], ["0", "1"], ["0.5", "1.75"]])
def test_a_file_without_a_header_is_refused(tmp_path: Path, labels: list[str]) -> None:
    rows = [(sentence(n), labels[n % 2]) for n in range(40)]
    header = f"the first text of all,{labels[0]}"
    with pytest.raises(
        DataError, match=r"the first line looks like data.* add a first line such as text,label"
    ):
        infer_task(csv_of(tmp_path / "d.csv", rows, header))


def test_texts_without_blanks_are_texts(tmp_path: Path) -> None:
    rows = [{"文本": f"这部电影非常好看第{n}次", "标签": ["好", "坏"][n % 2]} for n in range(40)]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    assert infer_task(path).notes[:2] == ("text: 文本", "label: 标签")


def test_the_first_record_may_lack_columns(tmp_path: Path) -> None:
    rows = [{"text": sentence(n), "label": ["good", "bad"][n % 2]} for n in range(40)]
    del rows[0]["label"]
    path = tmp_path / "d.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert infer_task(path).notes[-2] == "39 examples; rows skipped, without a text or a label: 1"


def test_quotes_of_a_tsv_file_are_recognised_only_if_they_are_clear(tmp_path: Path) -> None:
    def texts(name: str, *cells: str) -> set[str]:
        rows = [
            f"{cell} and {n} more words{end}\t{n % 2}"
            for n in range(30)
            for cell, end in [cells[n % len(cells)]]
        ]
        path = tmp_path / name
        path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
        return {text[0][:6] for (text,) in zip(infer_task(path).task.load("train").texts, strict=True)}

    assert texts("doubled.tsv", ('"so ""x"" it', '"'), ("a plain", "")) == {'so "x"', "a plai"}
    assert texts("broken.tsv", ('"two\nlines', '"'), ("a plain", "")) == {"two\nli", "a plai"}
    assert texts("whole.tsv", ('"so it', '"')) == {"so it "}
    assert texts("speech.tsv", ('"Oh no"', ""), ("a plain", "")) == {'"Oh no', "a plai"}
    assert texts("quoted.tsv", ('"Oh no', '"'), ("a plain", "")) == {'"Oh no', "a plai"}


def test_rows_with_one_text_of_a_pair_can_be_kept_by_joining_the_columns(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    rows = [f"{'' if n % 4 == 0 else f'title {n}'},body {n},{'ab'[n % 2]}" for n in range(40)]
    data.write_text("\n".join(["title: short,body,team", *rows]) + "\n")
    found = infer_task(data, ("title: short", "body"), "team")
    (note,) = [note for note in found.notes if "join" in note]
    assert note == (
        "10 rows have only one of title: short and body: to keep them, join the columns into one text, with "
        "`text: text` and, under source, `map: {text: ['title: short', body], label: team}`"
    )
    content = yaml.safe_load(found.path.read_text())
    content["text"] = "text"
    content["source"]["map"] = yaml.safe_load(note.partition("`map: ")[2].removesuffix("`"))
    found.path.write_text(yaml.safe_dump(content))
    task = Task.from_file(found.path)
    texts = {text for split in task.split_names() for (text,) in task.load(split).texts}
    assert len(texts) == 40
    assert {"body 0", "title 1 body 1"} <= texts


def test_a_folder_is_not_a_data_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder that has no train\.csv: name a data file in it"):
        init_task(tmp_path)


def test_columns_that_could_be_the_label_are_listed(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    rows = [f"a text of words {n},{n % 2},{n % 3},{n % 4}" for n in range(40)]
    data.write_text("\n".join(["text,a,b,c", *rows]) + "\n")
    with pytest.raises(DataError, match="; a, b or c could be it"):
        infer_task(data)


@pytest.mark.parametrize(
    ("count", "told"), [(7, "l0, l1, l2, l3, l4, l5, l6;"), (20, "l0, l1, l10, l11, l12, l13 and 14 more;")]
)
def test_labels_are_listed_unless_they_are_many(tmp_path: Path, count: int, told: str) -> None:
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["text,label", *(f"some text {n},l{n % count}" for n in range(400))]) + "\n")
    assert any(note.startswith(f"{count} labels: {told}") for note in infer_task(data).notes)


@pytest.mark.parametrize(("bad", "told"), [(1, True), (2, False)])
def test_malformed_rows_can_only_be_dropped_if_they_are_few(tmp_path: Path, bad: int, told: bool) -> None:
    data = tmp_path / "data.csv"
    rows = [f"some text {n},{'ab'[n % 2]}" for n in range(60)]
    data.write_text("\n".join(["text,label", *rows, *["an unquoted, text,a"] * bad]) + "\n")
    found = infer_task(data)
    (note,) = [note for note in found.notes if "cannot be read" in note]
    assert ("drop_malformed" in note) == told
    found.path.write_text(
        found.path.read_text().replace("  skip_empty", "  drop_malformed: true\n  skip_empty")
    )
    if told:
        assert Task.from_file(found.path).load("train").dropped == 1
    else:
        with pytest.raises(DataError, match="too many to drop"):
            Task.from_file(found.path).load("train")


def test_files_beside_the_training_file_are_the_other_splits(tmp_path: Path) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    rows = [(sentence(n), "good" if n % 3 else "bad") for n in range(140)]
    csv_of(folder / "train.csv", rows[:100], "text,label")
    csv_of(folder / "dev.csv", [*rows[100:119], (sentence(119), "mixed")], "text,label")
    found = infer_task(folder)
    assert (found.task.name, found.task.labels) == ("films", ["bad", "good", "mixed"])
    assert found.notes[-1] == "split: 80% train, 20% test, validation from dev.csv"
    assert [len(found.task.load(name)) for name in ("train", "validation", "test")] == [80, 20, 20]
    csv_of(folder / "test.csv", [(text,) for text, _ in rows[120:]], "text")
    again = init_task(folder / "train.csv", replace=True)
    assert "test.csv: not used, since it has no label" in again.notes
    assert again.task.load("test").texts == found.task.load("test").texts
    csv_of(folder / "test.csv", rows[120:], "text,label")
    whole = init_task(folder, replace=True)
    assert whole.notes[-1] == "split: 100% train, validation from dev.csv, test from test.csv"
    assert [len(whole.task.load(name)) for name in ("train", "validation", "test")] == [100, 20, 20]


def test_empty_columns_dates_and_splits_are_neither_text_nor_label(tmp_path: Path) -> None:
    rows = [
        ("", sentence(n), f"2024-01-{n % 9 + 1:02}", ("train", "test")[n % 2], str(n % 3)) for n in range(60)
    ]
    found = infer_task(csv_of(tmp_path / "d.csv", rows, "text,body,day,fold,is_spam"))
    assert found.task.source.map == {"text": ["body"], "label": ["is_spam"]}
    assert any(note.startswith("the splits in the column fold are not used") for note in found.notes)


def test_whole_numbers_are_the_same_labels_with_and_without_a_point(tmp_path: Path) -> None:
    rows = [(sentence(n), ["1.0", "2.0", "2", ""][n % 4]) for n in range(80)]
    task = infer_task(csv_of(tmp_path / "d.csv", rows, "text,stars")).task
    assert task.labels == ["1", "2"]
    assert Counter(label for name in task.split_names() for label in task.load(name).labels) == {0: 20, 1: 40}
