"""Encodings, delimiters and damage: what is recognised, and what a file that is not readable gets."""

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from tombola.errors import DataError, RecipeError
from tombola.tasks import Split, Task

ROWS = [["text", "label"], ["café, fine", "good"], ["naïve", "bad"]]


def load(folder: Path, name: str, content: bytes, **source: Any) -> Split:
    (folder / name).write_bytes(content)
    raw = {
        "name": "mine",
        "version": 1,
        "text": "text",
        "labels": ["bad", "good"],
        "metrics": ["accuracy"],
        "source": {"files": {"train": name}, **source},
    }
    (folder / "mine.yaml").write_text(yaml.safe_dump(raw))
    return Task.from_file(folder / "mine.yaml").load("train")


def refused(folder: Path, name: str, content: bytes, **source: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(folder, name, content, **source)
    assert str(caught.value).startswith(str(folder / name))
    return str(caught.value)


def table(delimiter: str, quote: bool = False) -> str:
    return (
        "\r\n".join(delimiter.join(f'"{field}"' if quote else field for field in row) for row in ROWS)
        + "\r\n"
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("packed", [False, True])
def test_marked_encodings_are_recognised(tmp_path: Path, encoding: str, packed: bool) -> None:
    content = table("\t").encode(encoding)
    name = "t.tsv.gz" if packed else "t.tsv"
    split = load(tmp_path, name, gzip.compress(content) if packed else content)
    assert split.texts == [("café, fine",), ("naïve",)]
    assert split.labels == [1, 0]


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_what_the_task_file_says(tmp_path: Path, encoding: str) -> None:
    content = table("\t").encode(encoding)
    message = refused(tmp_path, "t.tsv", content)
    if encoding.startswith("utf-16"):
        assert "t.tsv:1: contains a NUL byte" in message
        assert f"set `source.encoding: {encoding}`" in message
    else:
        assert "t.tsv:2: not UTF-8 text" in message
        assert "set `source.encoding: cp1252`" in message
        assert "iconv -f WINDOWS-1252 -t UTF-8 t.tsv" in message
    assert load(tmp_path, "t.tsv", content, encoding=encoding).texts == [("café, fine",), ("naïve",)]


def test_a_wrong_encoding(tmp_path: Path) -> None:
    assert "t.tsv:2: not ascii text" in refused(tmp_path, "t.tsv", table("\t").encode(), encoding="ascii")
    with pytest.raises(RecipeError, match="'utf-9' is not an encoding that Python knows"):
        load(tmp_path, "t.tsv", b"", encoding="utf-9")


@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("delimiter", [";", "|", "\t", ","])
def test_the_delimiter_is_recognised_where_there_is_no_doubt(
    tmp_path: Path, name: str, delimiter: str
) -> None:
    rows = [["text", "label"], ["fine", "good"], ["poor", "bad"]]
    content = "\n".join(delimiter.join(row) for row in rows).encode()
    assert load(tmp_path, name, content).texts == [("fine",), ("poor",)]


def test_semicolons_with_commas_in_the_text(tmp_path: Path) -> None:
    assert load(tmp_path, "t.csv", table(";").encode()).texts[0] == ("café, fine",)
    assert load(tmp_path, "t.csv", table(",", quote=True).encode()).texts[0] == ("café, fine",)
    assert load(tmp_path, "t.csv", b"text:label\nfine:good\n", delimiter=":").labels == [1]


def test_the_usual_delimiter_wins_and_a_doubtful_one_is_not_guessed(tmp_path: Path) -> None:
    assert load(tmp_path, "t.csv", b"text,label\na;b,good\n").texts == [("a;b",)]
    assert "no column 'text'; the columns are 'text;label|x'" in refused(
        tmp_path, "t.csv", b"text;label|x\na;b|c\n"
    )


def test_a_headless_file_by_the_number_of_its_columns(tmp_path: Path) -> None:
    split = load(tmp_path, "t.csv", b"fine, really;good;7\n", header=["text", "label", "id"])
    assert (split.texts, split.ids) == ([("fine, really",)], ["7"])


def test_whole_books_fit_in_a_field(tmp_path: Path) -> None:
    book = "word " * 40_000
    assert len(book) > 131_072
    split = load(tmp_path, "t.csv", f'text,label\n"{book}",good\n'.encode())
    assert split.texts == [(book.strip(),)]


def test_a_nul_byte_is_named_by_its_line(tmp_path: Path) -> None:
    message = refused(tmp_path, "t.csv", b"text,label\nfine,good\npo\0or,bad\n")
    assert "t.csv:3: contains a NUL byte" in message
    assert "binary or damaged" in message


CAUSES = {
    "empty label": (b"text\tlabel\nfine\t\n", "t.tsv:2: no label; expected one of bad, good: fill it in"),
    "unknown label": (
        b"text\tlabel\nfine\tokay\n",
        "t.tsv:2: unknown label 'okay'; expected one of bad, good: correct",
    ),
    "both": (
        b"text\tlabel\n \tokay\n",
        "t.tsv:2: empty text in column 'text': fill it in, remove the row, or skip such rows with "
        "`source.skip_empty: true` in the task file; unknown label 'okay'",
    ),
    "no column": (
        b"review\tlabel\nfine\tgood\n",
        "Rename it in the file, or map it with `map` in the task file",
    ),
}


@pytest.mark.parametrize(("content", "reason"), CAUSES.values(), ids=CAUSES)
def test_what_is_wrong_and_what_to_do(tmp_path: Path, content: bytes, reason: str) -> None:
    assert reason in refused(tmp_path, "t.tsv", content)
