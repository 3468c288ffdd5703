"""Each published layout, written by the test as its users have it on disk, and each way a row can be wrong."""

import gzip
import json
from pathlib import Path

import pytest

from tombola.errors import DataError
from tombola.tasks import Split, Task


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode())
    return folder


def load(task: str, folder: Path, split: str = "train") -> Split:
    return Task.named(task).load(split, folder=folder)


def refused(task: str, folder: Path, split: str = "train") -> str:
    with pytest.raises(DataError) as caught:
        load(task, folder, split)
    return str(caught.value)


def test_cola_has_no_header(tmp_path: Path) -> None:
    write(tmp_path, {"train.tsv": 'gj04\t1\t\tThey left.\ngj04\t0\t*\tThem "left.\n'})
    split = load("cola", tmp_path)
    assert split.texts == [("They left.",), ('Them "left.',)]
    assert (split.labels, split.ids) == ([1, 0], ["0", "1"])


def test_sst2_texts_are_stripped_and_line_ends_may_be_crlf(tmp_path: Path) -> None:
    write(tmp_path, {"dev.tsv": "sentence\tlabel\r\nno wit \t0\r\nfine .\t1\r\n\r\n"})
    split = load("sst2", tmp_path, "validation")
    assert (split.texts, split.labels) == ([("no wit",), ("fine .",)], [0, 1])


MRPC = 'Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\t"We won," he said.\tHe said "we won\n'


@pytest.mark.parametrize("name", ["train.tsv", "msr_paraphrase_train.txt"])
def test_mrpc_quotes_are_text_and_a_byte_order_mark_is_not(tmp_path: Path, name: str) -> None:
    write(tmp_path, {name: "\ufeff" + MRPC})
    split = load("mrpc", tmp_path)
    assert split.texts == [('"We won," he said.', 'He said "we won')]
    assert split.labels == [1]


def test_stsb_takes_the_scores_and_the_index(tmp_path: Path) -> None:
    columns = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
    write(tmp_path, {"train.tsv": f"{columns}\n12\tg\tf\ty\t1\tn\tn\tA plane.\tAn air plane.\t3.800\n"})
    split = load("stsb", tmp_path)
    assert (split.labels, split.ids, split.texts) == ([3.8], ["12"], [("A plane.", "An air plane.")])


def test_mnli_splits_map_to_matched_and_mismatched(tmp_path: Path) -> None:
    def rows(label: str) -> str:
        return f"index\tpairID\tsentence1\tsentence2\tlabel1\tgold_label\n5\tp\tA.\tB.\tneutral\t{label}\n"

    files = {"dev_matched.tsv": rows("contradiction"), "dev_mismatched.tsv": rows("entailment")}
    write(tmp_path, files)
    assert load("mnli", tmp_path, "validation").labels == [2]
    assert load("mnli", tmp_path, "validation_mismatched").labels == [0]


QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


def test_qqp_malformed_rows_are_dropped_counted_and_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = "".join(f"{i}\t1\t2\tWhy {i}?\tHow {i}?\t{i % 2}\n" for i in range(300))
    write(tmp_path, {"train.tsv": f'{QQP}{good}300\t1\t2\tIs it\n"\tReally?\t0\n301\t1\t2\tWhat?\t \t0\n'})
    split = load("qqp", tmp_path)
    assert (len(split), split.dropped) == (300, 3)
    assert "3 malformed rows" in caplog.text
    assert f"{tmp_path / 'train.tsv'}:302: 4 fields instead of 6" in caplog.text


def test_too_many_malformed_rows_are_not_dropped(tmp_path: Path) -> None:
    write(tmp_path, {"train.tsv": f"{QQP}1\t1\t2\tA?\tB?\t0\n" + "broken\n" * 9})
    assert "9 of 10 rows are malformed" in refused("qqp", tmp_path)


def test_ag_news_as_text_and_label(tmp_path: Path) -> None:
    write(tmp_path, {"test.csv": '"Oil, ""up"" again \\$2",2\n"Two\nlines",0\n'})
    split = load("ag_news", tmp_path, "test")
    assert split.texts == [('Oil, "up" again \\$2',), ("Two\nlines",)]
    assert split.labels == [2, 0]


def test_ag_news_in_the_original_release(tmp_path: Path) -> None:
    write(tmp_path, {"test.csv": '"3","Oil up","Prices, again."\n"1","Vote","Polls open."\n'})
    split = load("ag_news", tmp_path, "test")
    assert split.texts == [("Oil up Prices, again.",), ("Vote Polls open.",)]
    assert split.labels == [2, 0]


def test_original_classes_are_never_read_as_positions(tmp_path: Path) -> None:
    write(tmp_path, {"test.csv": '"0","Oil up","Prices."\n'})
    assert "unknown label '0'; expected one of 1, 2, 3, 4" in refused("ag_news", tmp_path, "test")


def test_imdb_json_lines_and_gzip(tmp_path: Path) -> None:
    rows = [{"id": f"test/neg/{i}", "text": f"Bad {i}.", "label": i % 2} for i in range(4)]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "imdb_test_subset_4.jsonl.gz").write_bytes(gzip.compress(content.encode()))
    split = load("imdb", tmp_path, "test")
    assert (split.labels, split.ids[1]) == ([0, 1, 0, 1], "test/neg/1")


def test_imdb_in_the_original_release(tmp_path: Path) -> None:
    names = ["pos/1_9", "neg/0_2", "unsup/5_0"]
    write(tmp_path, {f"aclImdb/test/{name}.txt": f"Text of {name}" for name in names})
    split = load("imdb", tmp_path, "test")
    assert split.ids == ["test/neg/0_2", "test/pos/1_9"]
    assert (split.labels, split.texts[1]) == ([0, 1], ("Text of pos/1_9",))


BAD = {
    "few fields": (
        "sentence\tlabel\nfine\t1\nlonely\n",
        ":3: 1 field instead of 2 (sentence, label): fill in what is missing, or remove the row.",
    ),
    "many fields": ("sentence\tlabel\nfine\tvery\t1\n", ":2: 3 fields instead of 2"),
    "blank line": ("sentence\tlabel\n\nfine\t1\n", ":2: empty line: remove it."),
    "unknown label": (
        "sentence\tlabel\nfine\t2\n",
        ":2: unknown label '2'; expected one of negative, positive: correct the row",
    ),
    "empty text": (
        "sentence\tlabel\n  \t1\n",
        ":2: empty text in column 'sentence': fill it in, remove the row",
    ),
    "other columns": ("text\tlabel\nfine\t1\n", ":1: no column 'sentence'; the columns are 'text', 'label'."),
    "only a header": ("sentence\tlabel\n", ": contains no rows."),
    "nothing": ("", "the file is empty."),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_a_bad_row_is_named_by_file_line_and_reason(tmp_path: Path, content: str, reason: str) -> None:
    write(tmp_path, {"train.tsv": content})
    message = refused("sst2", tmp_path)
    assert message.startswith(str(tmp_path / "train.tsv"))
    assert reason in message


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("high", "is not a number: correct it, or use kind: classification"),
        ("3,5", "is not a number: set `source.decimal: ','` in the task file, or use kind: classification"),
        ("nan", "is not a finite number"),
    ],
)
def test_a_score_must_be_a_number(tmp_path: Path, label: str, reason: str) -> None:
    write(tmp_path, {"train.tsv": f"index\tsentence1\tsentence2\tscore\n0\tA\tB\t1\n1\tA\tB\t{label}\n"})
    assert f"train.tsv:3: label '{label}' {reason}." in refused("stsb", tmp_path)


def test_an_id_stands_once(tmp_path: Path) -> None:
    write(tmp_path, {"train.tsv": "index\tsentence1\tsentence2\tlabel\n4\tA\tB\t0\n4\tC\tD\t1\n"})
    assert "train.tsv:3: id '4' also occurs at" in refused("wnli", tmp_path)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_bytes(b"sentence\tlabel\nfine\t1\ncaf\xe9\t1\n")
    assert "train.tsv:3: not UTF-8" in refused("sst2", tmp_path)


def test_a_cut_gzip_file(tmp_path: Path) -> None:
    whole = gzip.compress(b"sentence\tlabel\n" + b"fine\t1\n" * 1000)
    (tmp_path / "train.tsv.gz").write_bytes(whole[: len(whole) // 2])
    assert "damaged gzip file" in refused("sst2", tmp_path)


def test_csv_quotes_that_do_not_match_up(tmp_path: Path) -> None:
    write(tmp_path, {"test.csv": '"Fine",1\n"Not "so" fine",2\n'})
    assert "test.csv:2: the row's quotes do not match up" in refused("ag_news", tmp_path, "test")


def test_csv_lines_that_end_in_carriage_returns(tmp_path: Path) -> None:
    write(tmp_path, {"test.csv": '"Fine",1\rNot so fine,2\r'})
    told = refused("ag_news", tmp_path, "test")
    assert "test.csv:1: contains a carriage return that is not in quotes" in told
    assert "save the file with Unix or Windows line ends" in told


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ('{"text": "Fine", "label": ', ":2: not JSON"),
        ('["Fine", 1]', ":2: not a JSON object."),
        ('{"label": 1}', ":2: no text in column 'text'."),
        (
            '{"text": 5, "label": 1}',
            ":2: column 'text' is not text: 5; write it as text, or use another column.",
        ),
        (
            '{"text": {"body": "' + 99 * "Fine" + '"}, "label": 1}',
            "ine'}; write it as text, or use another column.",
        ),
        ('\n{"text": "Fine", "label": 1}', ":2: empty line: remove it."),
        ('{"text": "Fine"}', ":2: no label; expected one of"),
        (r'{"text": "Fine \ud83d", "label": 1}', r":2: contains half of a character ('\ud83d')"),
        (r'{"text": "Fine", "label": 1, "more": {"\ud83d": 1}}', ":2: contains half of a character"),
    ],
)
def test_bad_json_lines(tmp_path: Path, row: str, reason: str) -> None:
    write(tmp_path, {"test.jsonl": '{"text": "Fine", "label": 1}\n' + row + "\n"})
    told = refused("imdb", tmp_path, "test")
    assert "test.jsonl:2: " in told
    assert reason in told


def test_several_files_for_one_split(tmp_path: Path) -> None:
    row = '{"text": "Fine", "label": 1}\n'
    write(tmp_path, {"imdb_test_a.jsonl": row, "imdb_test_b.jsonl": row})
    assert "several files for imdb/test: imdb_test_a.jsonl, imdb_test_b.jsonl" in refused(
        "imdb", tmp_path, "test"
    )


def test_columns_that_are_joined_may_be_null(tmp_path: Path) -> None:
    rows = [("A title", "its body"), (None, "a body"), ("a title", None)]
    lines = [json.dumps({"title": title, "body": body, "label": "0"}) for title, body in rows]
    (tmp_path / "d.jsonl").write_text("\n".join(lines) + "\n")
    content = (
        "{name: t, version: 1, text: text, labels: ['0', '1'], metrics: [accuracy], "
        "source: {files: {train: d.jsonl}, map: {text: [title, body]}, skip_empty: true}}"
    )
    (tmp_path / "t.yaml").write_text(content)
    task = Task.from_file(tmp_path / "t.yaml")
    assert task.load("train").texts == [("A title its body",), ("a body",), ("a title",)]
    (tmp_path / "d.jsonl").write_text("\n".join([*lines, '{"title": null, "body": null, "label": "1"}']))
    assert len(task.load("train")) == 3


def test_columns_that_are_joined_may_be_empty_cells(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("title,body,label\nA title,its body,0\n,a body,1\na title, ,1\n")
    (tmp_path / "t.yaml").write_text(
        "{name: t, version: 1, text: text, labels: ['0', '1'], metrics: [accuracy], "
        "source: {files: {train: d.csv}, map: {text: [title, body]}}}"
    )
    assert Task.from_file(tmp_path / "t.yaml").load("train").texts == [
        ("A title its body",),
        ("a body",),
        ("a title",),
    ]


def test_labels_that_are_called_by_numbers_are_never_read_as_positions(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(
        "{name: t, version: 1, text: text, labels: [1, 2, 3], metrics: [accuracy], source: {files: {train: d.csv}}}"
    )
    (tmp_path / "d.csv").write_text("text,label\na,1\nb,3\nc,2\n")
    assert Task.from_file(tmp_path / "t.yaml").load("train").labels == [0, 2, 1]
    (tmp_path / "d.csv").write_text("text,label\na,1\nb,0\nc,2\n")
    with pytest.raises(DataError, match=r"d\.csv:3: unknown label '0'; expected one of 1, 2, 3"):
        Task.from_file(tmp_path / "t.yaml").load("train")
