"""Documents out of text files, and the blocks that they are packed into."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tests.words import decoder_tokenizer
from tombola.errors import DataError
from tombola.tasks import Split, Task, encode
from tombola.tasks.documents import divide, is_heading
from tombola.tasks.packing import Packed

WIKI = (
    " \n = First one = \n \n Some text . \n = = A section = = \n More . \n = Second = \n \n Other text . \n"
)
FIRST = " = First one = \n \n Some text . \n = = A section = = \n More . "
WORDS = [f"w{i}" for i in range(50)]


def task(folder: Path, files: dict[str, str], **settings: object) -> Task:
    (folder / "task.yaml").write_text(
        f"{{name: mine, version: 1, kind: causal-lm, text: text, metrics: [perplexity], settings: {settings},"
        f" source: {{files: {files}}}}}"
    )
    return Task.from_file(folder / "task.yaml")


def documents(*texts: str, **settings: object) -> Split:
    own = Task.named("wikitext2").with_settings(settings)
    return Split(
        own, "train", [(text,) for text in texts], [None] * len(texts), [*map(str, range(len(texts)))], ""
    )


def packed(split: Split, tokenizer: object, length: int) -> Packed:
    found = encode(split, tokenizer, length)  # type: ignore[arg-type]
    assert isinstance(found, Packed)
    return found


@pytest.mark.parametrize("name", ["wiki.valid.raw", "valid.txt", "valid.raw.gz"])
def test_wikitext_is_parted_at_the_titles_of_articles(tmp_path: Path, name: str) -> None:
    (tmp_path / "wikitext-2").mkdir()
    content = WIKI.encode()
    (tmp_path / "wikitext-2" / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    split = Task.named("wikitext2").load("validation", tmp_path)
    assert split.texts == [(FIRST,), (" = Second = \n \n Other text . \n",)]
    assert split.labels == [None, None]


def test_a_section_is_no_title() -> None:
    assert is_heading(" = Title = ")
    assert not any(
        map(is_heading, (" = = Section = = ", " = = = Deeper = = = ", " = ", "a = b", " = = ", ""))
    )


@pytest.mark.parametrize(
    ("division", "expected"),
    [
        ("files", ["a\nb\n\n c\n\n\nd\n"]),
        ("blank_lines", ["a\nb", " c", "d"]),
        ("lines", ["a", "b", " c", "d"]),
        ("auto", ["a\nb\n\n c\n\n\nd\n"]),
        ("headings", ["a\nb\n\n c\n\n\nd\n"]),
    ],
)
def test_a_text_is_divided_as_the_task_says(tmp_path: Path, division: str, expected: list[str]) -> None:
    (tmp_path / "novel").write_text("a\nb\n\n c\n\n\nd\n")
    assert task(tmp_path, {"train": "novel"}, documents=division).load("train").texts == [
        (one,) for one in expected
    ]


def test_a_document_knows_its_first_line() -> None:
    assert [number for number, _ in divide(enumerate(WIKI.split("\n"), start=1), "auto")] == [2, 7]


def test_every_file_of_a_folder_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "texts" / "more").mkdir(parents=True)
    (tmp_path / "texts" / "b.txt").write_text("second\r\nline")
    (tmp_path / "texts" / "a.txt").write_text("first")
    (tmp_path / "texts" / "more" / "c.txt.gz").write_bytes(gzip.compress(b"third"))
    (tmp_path / "texts" / "empty.txt").write_text(" \n")
    split = task(tmp_path, {"train": "texts"}).load("train")
    assert split.texts == [("first",), ("second\nline",), ("third",)]


def test_rows_of_a_table_are_documents_unless_they_are_lines_of_articles(tmp_path: Path) -> None:
    (tmp_path / "plain.jsonl").write_text('{"text": "one"}\n{"text": " "}\n{"text": "two\\n"}\n')
    lines = [line + "\n" for line in WIKI.split("\n")[:-1]]
    (tmp_path / "lines.jsonl").write_text("".join(f'{{"text": {json.dumps(line)}}}\n' for line in lines))
    own = task(tmp_path, {"train": "plain.jsonl", "validation": "lines.jsonl"})
    assert own.load("train").texts == [("one",), ("two\n",)]
    assert own.load("validation").texts == [(FIRST,), (" = Second = \n \n Other text . ",)]


def test_lines_of_articles_are_joined_in_the_column_that_the_text_is_mapped_to(tmp_path: Path) -> None:
    lines = [{"body": line, "text": "another"} for line in WIKI.split("\n")[:-1]]
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    task(tmp_path, {"train": "lines.jsonl"}, documents="headings")
    path = tmp_path / "task.yaml"
    path.write_text(path.read_text().replace("source: {", "source: {map: {text: body}, "))
    own = Task.from_file(path)
    assert own.load("train").texts == [(FIRST,), (" = Second = \n \n Other text . ",)]


def test_an_article_has_the_id_of_its_first_line(tmp_path: Path) -> None:
    lines = [{"id": f"line {place}", "text": line} for place, line in enumerate(WIKI.split("\n")[:-1])]
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    split = task(tmp_path, {"train": "lines.jsonl"}).load("train")
    assert split.texts == [(FIRST,), (" = Second = \n \n Other text . ",)]
    assert split.ids == ["line 1", "line 6"]


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "novel").write_bytes("a text\nof two lines".encode("utf-16-le"))
    with pytest.raises(DataError, match="novel:1: contains a NUL byte"):
        task(tmp_path, {"train": "novel"}).load("train")


@pytest.mark.parametrize("adds_bos", [False, True])
@pytest.mark.parametrize("length", [2, 7, 16, 500])
def test_every_token_is_asked_for_once_from_those_before_it(adds_bos: bool, length: int) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, size=size)) for size in (13, 1, 40, 5)]
    tokenizer = decoder_tokenizer(texts, adds_bos=adds_bos)
    blocks = packed(documents(*texts), tokenizer, length)
    own = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    between = [2, 1] if adds_bos else [2]
    stream = [1] if adds_bos else [2]
    for ids in own:
        stream += [*ids, *between]
    stream = stream[:-1] if adds_bos else stream
    asked, owners = [], []
    for block in range(len(blocks)):
        example = blocks[block]
        assert len(example["input_ids"]) <= length
        assert example["labels"][:-1] == example["input_ids"][1:]
        assert example["labels"][-1] == -100
        asked += example["labels"][:-1]
        owners += blocks.documents[blocks.offsets[block] : blocks.offsets[block + 1] - 1].tolist()
    assert asked == stream[1:]
    for number, ids in enumerate(own):
        assert [token for token, owner in zip(asked, owners, strict=True) if owner == number] == ids
    assert blocks.lengths[:-1].tolist() == [min(length, len(stream))] * (len(blocks) - 1)


def test_a_block_may_be_shorter_than_what_the_model_reads() -> None:
    tokenizer = decoder_tokenizer(WORDS)
    blocks = packed(documents(" ".join(WORDS), block_size=8), tokenizer, 64)
    assert blocks.lengths.max() == 8
    with pytest.raises(DataError, match="block_size is 8, but inputs have at most 4 tokens"):
        encode(documents("w1", block_size=8), tokenizer, 4)


def test_what_cannot_be_packed_is_refused() -> None:
    tokenizer = decoder_tokenizer(WORDS)
    tokenizer.eos_token = None
    with pytest.raises(DataError, match="no end-of-text token"):
        encode(documents("w1"), tokenizer, 8)
