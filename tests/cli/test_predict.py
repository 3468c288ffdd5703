"""`tombola predict`: rows without labels in, the same rows with labels out; and GLUE's files."""

import csv
import json
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from typer.testing import CliRunner

import tombola
from tests.world import World
from tombola.api import glue_submission, predict_file, predicting
from tombola.cli import app
from tombola.errors import DataError, TombolaError
from tombola.foundations.checksums import sealed
from tombola.tasks import Task
from tombola.tasks.inferring import infer_task
from tombola.tickets.predicting import TextFile

TEXTS = ["the film was lovely", "a dull plot, very poor", "great story"]


def command(*arguments: Any, given: str | None = None) -> str:
    done = CliRunner().invoke(
        app, ["predict", *map(str, arguments), "--quiet"], input=given, catch_exceptions=False
    )
    assert done.exit_code == 0
    return done.stdout


@pytest.fixture(scope="module")
def ticket(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predict")
    recipe = world.recipe(search={"method": "magnitude"})
    result = tombola.run(recipe, output=folder / "out", store=folder / "store")
    return folder / "out" / str(result.cells[0].ticket)


def by_torch(folder: Path, *texts: list[str]) -> torch.Tensor:
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    return model(**tokenizer(*texts, return_tensors="pt", padding=True)).logits.detach()


def test_csv_comes_back_with_a_label_and_probabilities(ticket: Path, tmp_path: Path) -> None:
    with (tmp_path / "new.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["key", "sentence"], *((i, text) for i, text in enumerate(TEXTS))])
    command(ticket, tmp_path / "new.csv", "-o", tmp_path / "out" / "labelled.csv")
    with (tmp_path / "out" / "labelled.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["key"], row["sentence"]) for row in rows] == [(str(i), text) for i, text in enumerate(TEXTS)]
    for row, chances in zip(rows, by_torch(ticket, TEXTS).softmax(-1), strict=True):
        assert float(row["probability_negative"]) == pytest.approx(float(chances[0]), abs=1e-5)
        assert float(row["probability_positive"]) == pytest.approx(float(chances[1]), abs=1e-5)
        assert row["prediction"] == ("negative", "positive")[int(chances.argmax())]


def test_json_lines_keep_every_key_and_go_to_stdout(ticket: Path, tmp_path: Path) -> None:
    rows = [{"sentence": TEXTS[0]}, {"sentence": TEXTS[1], "label": "negative", "note": [1, "é"]}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = [json.loads(line) for line in command(ticket, tmp_path / "new.jsonl").splitlines()]
    assert [{key: row[key] for key in given} for row, given in zip(found, rows, strict=True)] == rows
    predictions = tombola.predict(ticket, [str(row["sentence"]) for row in rows])
    assert [row["prediction"] for row in found] == [one.label for one in predictions]
    assert [row["probabilities"] for row in found] == [
        {name: round(chance, 6) for name, chance in (one.probabilities or {}).items()} for one in predictions
    ]


def test_events_carry_rows_as_objects(ticket: Path) -> None:
    # Regression: all rows were one string within the last event.
    rows = [{"sentence": TEXTS[0], "share": 0.123456789}, {"sentence": TEXTS[1], "note": ["é\u2028"]}]
    given = "".join(json.dumps(row) + "\n" for row in rows)
    done = CliRunner().invoke(app, ["predict", str(ticket), "-", "--quiet", "--json"], input=given)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    found = [event["row"] for event in events if event["event"] == "predicted"]
    assert [{key: row[key] for key in given} for row, given in zip(found, rows, strict=True)] == rows
    assert all(set(row["probabilities"]) == {"negative", "positive"} for row in found)
    assert events[-1]["event"] == "result"
    csv_rows = CliRunner().invoke(
        app, ["predict", str(ticket), "-", "--quiet", "--json"], input="key,sentence\n7,dull\n"
    )
    assert '"row": {"key": "7", "sentence": "dull", "prediction": ' in csv_rows.stdout


def test_rows_without_a_text(ticket: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "new.csv").write_text("key,sentence\n1,\n2, \n")
    with pytest.raises(DataError, match=r"new.csv: the text is empty in every row: check the text column\."):
        predict_file(ticket, tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text("key,sentence\n1,\n2,dull\n")
    assert len(predict_file(ticket, tmp_path / "new.csv").splitlines()) == 3
    assert "new.csv: 1 row has an empty text, so the prediction for it is meaningless" in caplog.text


def test_parquet_columns_of_any_type_are_passed_through(ticket: Path, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    day = datetime(2020, 2, 29, 12)
    row = {"sentence": TEXTS[0], "when": day, "price": Decimal("1.50"), "tags": [day.date()], "seen": True}
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "new.parquet")
    (found,) = csv.DictReader(predict_file(ticket, tmp_path / "new.parquet", tmp_path / "o.csv").splitlines())
    shown = {"when": str(day), "price": "1.50", "tags": '["2020-02-29"]', "seen": "true"}
    assert {name: found[name] for name in shown} == shown
    whole = json.loads(predict_file(ticket, tmp_path / "new.parquet", tmp_path / "o.jsonl"))
    assert (whole["when"], whole["price"], whole["seen"]) == (str(day), "1.50", True)


@pytest.mark.parametrize(
    "given",
    [
        "".join(json.dumps({"sentence": text}) + "\n" for text in TEXTS),
        "sentence\tnumber\n" + "".join(f"{text}\t7\n" for text in TEXTS),
        'sentence\n"' + '"\n"'.join(TEXTS) + '"\n',
        "\n".join(TEXTS),
    ],
    ids=["jsonl", "tsv", "csv", "txt"],
)
def test_standard_input_in_any_form(ticket: Path, given: str) -> None:
    labels = [one.label for one in tombola.predict(ticket, TEXTS)]
    out = command(ticket, "-", given=given)
    if out.startswith("{"):
        assert [json.loads(line)["prediction"] for line in out.splitlines()] == labels
    else:
        rows = list(csv.DictReader(out.splitlines(), delimiter="\t" if "\t" in out else ","))
        assert [row["sentence"] for row in rows] == TEXTS
        assert [row["prediction"] for row in rows] == labels


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("a film\n\na great plot\n".encode("utf-16"), ["a film", "a great plot"]),
        ("sentence;number\na film, dull;7\n".encode("utf-16"), ["a film, dull"]),
        (b"sentence;number\na film;7\n", ["a film"]),
        ("one\u2028text\x0c here\r\nanother\n".encode(), ["one\u2028text\x0c here", "another"]),
    ],
    ids=["utf-16 txt", "utf-16 csv", "semicolons", "separators in a line"],
)
def test_encodings_and_separators_of_standard_input(ticket: Path, given: bytes, texts: list[str]) -> None:
    out = predict_file(ticket, given)
    if out.startswith("{"):
        assert [json.loads(line)["sentence"] for line in out.split("\n")[:-1]] == texts
    else:
        assert [row["sentence"] for row in csv.DictReader(out.splitlines())] == texts


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le"])
def test_json_lines_in_the_encoding_of_the_task(world: World, tmp_path: Path, encoding: str) -> None:
    task = Task.from_file(world.task)
    task = task.model_copy(update={"source": task.source.model_copy(update={"encoding": encoding})})
    row = {"sentence": "a film for the café"}
    (tmp_path / "new.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding=encoding)
    assert TextFile.read(tmp_path / "new.jsonl", task).rows == [row]
    assert TextFile.of("a film for the café\n".encode(), task, None).rows == [row]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_new_texts_may_have_another_encoding_and_delimiter_than_the_training_data(
    tmp_path: Path, encoding: str, delimiter: str, ending: str
) -> None:
    rows = [f"Büro {number};{('gut', 'schlecht')[number % 2]}" for number in range(30)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["Satz;Urteil", *rows]) + "\n", encoding="cp1252")
    task = infer_task(data, ("Satz",), "Urteil").task
    assert (task.source.encoding, task.source.delimiter) == ("cp1252", ";")
    new = tmp_path / f"new.{ending}"
    table = f"Nummer{delimiter}Satz\n7{delimiter}Kündigung für das Büro\n"
    record = json.dumps({"Nummer": "7", "Satz": "Kündigung für das Büro"}, ensure_ascii=False) + "\n"
    new.write_text(table if ending == "csv" else record, encoding=encoding)
    for read in (TextFile.read(new, task), TextFile.of(new.read_bytes(), task, ending)):  # type: ignore[arg-type]
        assert read.split.texts == [("Kündigung für das Büro",)]
        assert read.rows == [{"Nummer": "7", "Satz": "Kündigung für das Büro"}]


@pytest.mark.parametrize("columns", [("body",), ("second", "first"), ("first", "body")])
def test_columns_named_as_in_the_data_come_before_those_named_as_in_the_task(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    names = ["text", "first", "second", "body"]
    rows = [f"{','.join(f'{name} {number}' for name in names)},{number % 2}" for number in range(30)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join([",".join([*names, "label"]), *rows]) + "\n")
    task = infer_task(data, columns).task
    assert TextFile.read(data, task).split.texts[3] == tuple(f"{name} 3" for name in columns)
    if len(columns) == 1:
        assert TextFile.of(b"text,note\na film,new\n", task, "csv").split.texts == [("a film",)]


def test_what_cannot_be_written_is_refused_before_the_work(
    ticket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def predict_split(*_: Any) -> None:
        pytest.fail("the texts were predicted first")

    monkeypatch.setattr(predicting, "_predict_split", predict_split)
    with pytest.raises(DataError, match="it already has a column 'prediction'"):
        predict_file(ticket, b"sentence,prediction\nfine,x\n")
    with pytest.raises(DataError, match=r"which \.tsv does not support"):
        predict_file(ticket, b'{"sentence": "a\\tfilm"}', tmp_path / "out.tsv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "folder.csv", tmp_path / "file" / "out.csv"):
        with pytest.raises(OSError, match=re.escape(str(place if place.name != "out.csv" else place.parent))):
            predict_file(ticket, b"fine\n", place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.csv"]


def test_what_cannot_be_read_or_written_is_said(ticket: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"standard input:1: no column 'sentence'; the columns are 'a', 'b'"):
        predict_file(ticket, b"a,b\n1,2\n", form="csv")
    with pytest.raises(DataError, match=r"a nice film: there is no such file; .* `echo 'a nice film' \| tom"):
        TextFile.read(Path("a nice film"), Task.named("sst2"))
    with pytest.raises(DataError, match="standard input: there is nothing to predict"):
        predict_file(ticket, b" \n")
    with pytest.raises(DataError, match=r"standard input:2: not UTF-8 text .*`iconv -f WINDOWS-1252"):
        predict_file(ticket, "fine\ncafé\n".encode("latin-1"))
    (tmp_path / "my texts.txt").write_text("\n".join(TEXTS))
    with pytest.raises(
        DataError, match=r"one text per line, .* `tombola predict MODEL - < '.*/my texts\.txt'`"
    ):
        predict_file(ticket, tmp_path / "my texts.txt")
    with pytest.raises(DataError, match=r"it already has a column 'prediction'"):
        predict_file(ticket, b"sentence,prediction\nfine,x\n")
    with pytest.raises(DataError, match=r"written as \.csv, \.tsv or \.jsonl"):
        predict_file(ticket, b"fine\n", tmp_path / "out.xlsx")
    with pytest.raises(DataError, match=r"which \.tsv does not support"):
        predict_file(ticket, b'{"sentence": "a\\tfilm"}', tmp_path / "out.tsv")
    for arguments, sentence in [
        ([], "takes a FILE"),
        (["x.csv", "--partial"], "--partial only works with --glue"),
        (["x.csv", "--data", "elsewhere"], "--data only works with --glue"),
        (["x.csv", "--format", "csv"], "--format is only for standard input"),
        (["x.csv", "--glue"], "leave out FILE"),
        (["--glue"], "set the folder with -o"),
    ]:
        with pytest.raises(TombolaError, match=sentence):
            CliRunner().invoke(app, ["predict", str(ticket), *arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def shared(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a ticket of RTE, pairs with a label, and of STS-B, pairs with a number, on data of the world."""
    root = tmp_path_factory.mktemp("glue")
    words = [line.split("\t")[0] for line in world.task.with_name("train.tsv").read_text().splitlines()[1:41]]
    for folder, label in (("RTE", ["entailment", "not_entailment"]), ("STS-B", ["0.5", "4.5"])):
        place = root / "data" / "glue" / folder
        place.mkdir(parents=True)
        header, column = ("index\tsentence1\tsentence2", "label" if folder == "RTE" else "score")
        for split in ("train", "dev"):
            rows = [f"{i}\t{text}\t{words[-i]}\t{label[i % 2]}" for i, text in enumerate(words)]
            (place / f"{split}.tsv").write_text("\n".join([f"{header}\t{column}", *rows]) + "\n")
        tested = [f"{i}\t{text}\t{words[-i]}" for i, text in enumerate(words[:5])]
        (place / "test.tsv").write_text("\n".join([header, *tested]) + "\n")
    recipe = {
        "name": "glue",
        "model": str(world.model),
        "tasks": ["rte", "stsb"],
        "precision": "fp32",
        "data": {"folder": str(root / "data")},
        "train": {"epochs": 1, "batch_size": 16, "max_length": 24},
        "search": {"method": "magnitude", "units": "head"},
    }
    tombola.share(recipe, output=root / "out", store=root / "store")
    return root


def test_one_task_of_a_shared_ticket_labels_pairs_or_gives_numbers(shared: Path) -> None:
    ticket = shared / "out" / "tickets" / "seed-1"
    pairs = [(TEXTS[0], TEXTS[1]), (TEXTS[2], TEXTS[0])]
    given = "".join(json.dumps({"sentence1": a, "sentence2": b}) + "\n" for a, b in pairs)
    labelled = [json.loads(line) for line in command(ticket, "-", "--task", "rte", given=given).splitlines()]
    assert [set(row["probabilities"]) for row in labelled] == [{"entailment", "not_entailment"}] * 2
    assert [row["prediction"] for row in labelled] == [
        one.label for one in tombola.predict(ticket, pairs, task="rte")
    ]
    scored = [json.loads(line) for line in command(ticket, "-", "--task", "stsb", given=given).splitlines()]
    assert all(isinstance(row["prediction"], float) and "probabilities" not in row for row in scored)
    with pytest.raises(TombolaError, match="rte, stsb"):
        tombola.predict(ticket, pairs)


def test_glue_files_of_all_tasks_of_a_run(shared: Path, tmp_path: Path) -> None:
    out = command(shared / "out", "--glue", "-o", tmp_path, "--data", shared / "data", "--partial")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RTE.tsv", "STS-B.tsv"]
    assert str(tmp_path / "RTE.tsv") in out
    test = shared / "data" / "glue" / "RTE" / "test.tsv"
    labels = [one.label for one in tombola.predict(shared / "out/tickets/seed-1", test, task="rte")]
    rows = [line.split("\t") for line in (tmp_path / "RTE.tsv").read_text().splitlines()]
    assert rows == [["index", "prediction"], *([str(i), label] for i, label in enumerate(labels))]
    with pytest.raises(DataError, match="5 predictions, but the test set"):
        glue_submission(shared / "out", tmp_path, data=shared / "data")
    with pytest.raises(DataError, match=r"No test\.tsv for stsb"):
        glue_submission(shared / "out", tmp_path, task="stsb", data=tmp_path, partial=True)


def test_a_run_with_two_tickets_of_a_task_is_asked_which(ticket: Path, tmp_path: Path) -> None:
    run = ticket.parent.parent
    record = json.loads((run / "results.json").read_text())
    record["cells"] *= 2
    record["cells"][1] = {**record["cells"][1], "ticket": "tickets/other"}
    record.pop("checksum")
    (tmp_path / "results.json").write_text(sealed(record))
    with pytest.raises(TombolaError, match=r"has 2 tickets of .*, but only one can be submitted"):
        glue_submission(tmp_path, tmp_path / "out")


def test_scores_that_cannot_be_written_are_refused_before_the_work(
    ticket: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tombola.api.evaluate", lambda *_, **__: pytest.fail("the model was scored first"))
    for place, error in ((tmp_path, IsADirectoryError), (ticket / "config.json" / "x.json", OSError)):
        with pytest.raises(error):
            CliRunner().invoke(app, ["evaluate", str(ticket), "-o", str(place)], catch_exceptions=False)
