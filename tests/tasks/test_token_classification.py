"""Sentences with tags: the files they come in, the schemes of entities, and tags on first sub-words."""

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import yaml
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from tombola.errors import DataError, RecipeError
from tombola.tasks import Split, Tagged, Task, collate_of, encode
from tombola.tasks.readers import BadRow
from tombola.tasks.tags import Entity, entities, entity_types, to_iob2

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
WORDS = ["John", "Smith", "saw", "New", "York", "."]
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC", "O"]
NUMBERS = [1, 2, 0, 3, 4, 0]


def tagging(folder: Path, files: dict[str, str], **changes: Any) -> Task:
    source = changes.pop("source", {})
    content = {
        "name": "names",
        "version": 1,
        "kind": "token-classification",
        "text": "tokens",
        "labels": LABELS,
        "metrics": ["entity_f1", "token_accuracy"],
        "source": {"files": files, **source},
        **changes,
    }
    (folder / "names.yaml").write_text(yaml.safe_dump(content))
    return Task.from_file(folder / "names.yaml")


def conll(*sentences: tuple[list[str], list[str]], between: str = " ") -> str:
    return "\n".join(
        "".join(f"{word}{between}x{between}{tag}\n" for word, tag in zip(*one, strict=True))
        for one in sentences
    )


@pytest.mark.parametrize("between", [" ", "\t"])
@pytest.mark.parametrize("name", ["train.conll", "train.txt", "train.tsv", "eng.train", "train.bio.gz"])
def test_a_word_a_line(tmp_path: Path, name: str, between: str) -> None:
    text = "-DOCSTART- x O\n\n" + conll((WORDS, TAGS), (["Hi"], ["O"]), between=between) + "\n\n"
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    split = tagging(tmp_path, {"train": name}).load("train")
    assert split.texts == [(" ".join(WORDS),), ("Hi",)]
    assert split.labels == [NUMBERS, [0]]


def test_the_columns_of_words_and_tags_are_what_header_and_map_say(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("1 Anna B-PER NN\n2 left O VB\n")
    layout = {"header": ["number", "form", "entity", "pos"], "map": {"tokens": "form", "tags": "entity"}}
    split = tagging(tmp_path, {"train": "t.conll"}, source=layout).load("train")
    assert (split.texts, split.labels) == ([("Anna left",)], [[1, 0]])


def test_comments_are_no_words_but_a_hash_may_be_one(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("# text = Anna left\nAnna B-PER\nleft O\n\n# O\n1 O\n")
    split = tagging(tmp_path, {"train": "t.conll"}).load("train")
    assert split.texts == [("Anna left",), ("# 1",)]


@pytest.mark.parametrize("joined", [False, True], ids=["lists", "joined"])
def test_json_lines(tmp_path: Path, joined: bool) -> None:
    row = {"tokens": " ".join(WORDS), "tags": " ".join(TAGS)} if joined else {"tokens": WORDS, "tags": TAGS}
    (tmp_path / "t.jsonl").write_text(json.dumps(row) + "\n")
    assert tagging(tmp_path, {"train": "t.jsonl"}).load("train").labels == [NUMBERS]


@pytest.mark.parametrize(("name", "between"), [("t.csv", ","), ("t.tsv", "\t")])
def test_a_table_of_joined_words(tmp_path: Path, name: str, between: str) -> None:
    rows = [["id", "tokens", "ner"], ["7", " ".join(WORDS), " ".join(TAGS)]]
    (tmp_path / name).write_text("\n".join(between.join(row) for row in rows))
    split = tagging(tmp_path, {"train": name}, source={"map": {"tags": "ner"}}).load("train")
    assert (split.ids, split.texts, split.labels) == (["7"], [(" ".join(WORDS),)], [NUMBERS])


def test_parquet_files_of_sentences_and_of_passages(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    parquet.write_table(
        pyarrow.table({"words": [["EU", "left"]], "tags": [["B-ORG", "O"]]}), tmp_path / "d.parquet"
    )
    (tmp_path / "t.yaml").write_text(
        "{name: t, version: 1, kind: token-classification, text: words, labels: [O, B-ORG, I-ORG], "
        "metrics: [entity_f1], source: {files: {train: d.parquet}}}"
    )
    split = Task.from_file(tmp_path / "t.yaml").load("train")
    assert (split.texts, split.labels) == ([("EU left",)], [[1, 0]])
    parquet.write_table(pyarrow.table({"text": ["a b", " ", "c"]}), tmp_path / "d.parquet")
    (tmp_path / "t.yaml").write_text(
        "{name: t, version: 1, kind: masked-lm, text: text, metrics: [masked_accuracy], "
        "source: {files: {train: d.parquet}}}"
    )
    assert Task.from_file(tmp_path / "t.yaml").load("train").texts == [("a b",), ("c",)]


def test_the_hub_gives_numbers_of_tags_by_its_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC"]
    shuffled = [*names[1:], "O"]
    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("string")),
            "ner_tags": datasets.List(datasets.ClassLabel(names=shuffled)),
        }
    )
    data = datasets.Dataset.from_dict(
        {"tokens": [["EU", "rejects"]], "ner_tags": [[2, 8]]}, features=features
    )
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: data)
    split = Task.named("conll2003").load("validation")
    assert (split.texts, split.labels) == ([("EU rejects",)], [[names.index("B-ORG"), 0]])


def test_conll2003_in_its_release_and_in_iob2(tmp_path: Path) -> None:
    release = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nUN NNP I-NP B-ORG\nleft VBD I-VP O\nParis NNP I-NP I-LOC\n"
    for name, text in {"eng.testa": release, "eng.testb": release.replace("I-NP I-", "I-NP B-")}.items():
        (tmp_path / name).write_text(text)
    task = Task.named("conll2003")
    expected = [[task.labels.index(tag) for tag in ("B-ORG", "B-ORG", "O", "B-LOC")]]  # type: ignore[union-attr]
    assert task.load("validation", folder=tmp_path).labels == expected
    assert task.load("test", folder=tmp_path).labels == expected


BAD = {
    "tags and words": ({"tokens": ["a", "b"], "tags": ["O"]}, "1 tags for 2 words"),
    "unknown tag": (
        {"tokens": ["a"], "tags": ["B-DOG"]},
        "unknown tag 'B-DOG' of 'a'; expected one of O, B-PER",
    ),
    "not iob2": ({"tokens": ["a", "b"], "tags": ["O", "I-PER"]}, "'I-PER' of 'b' continues no entity"),
    "other type": ({"tokens": ["a", "b"], "tags": ["B-LOC", "I-PER"]}, "set `source.tag_scheme: iob1`"),
    "a space in a word": ({"tokens": ["New York"], "tags": ["B-LOC"]}, "'New York' is not a word"),
    "no words": ({"tokens": [], "tags": []}, "no words in column 'tokens'"),
    "a number": ({"tokens": 5, "tags": ["O"]}, "neither a list nor text with spaces: 5"),
}


@pytest.mark.parametrize(("row", "reason"), BAD.values(), ids=BAD)
def test_a_bad_sentence_is_named(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    good = {"tokens": WORDS, "tags": TAGS}
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(row)}\n")
    with pytest.raises(DataError) as caught:
        tagging(tmp_path, {"train": "t.jsonl"}).load("train")
    assert str(caught.value).startswith(f"{tmp_path / 't.jsonl'}:2: ")
    assert reason in str(caught.value)


def test_a_line_with_other_columns_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("a x O\n\nb x O\nc O\n")
    with pytest.raises(DataError, match=r"t\.conll:3: the sentence's word 2 has 2 columns instead of 3"):
        tagging(tmp_path, {"train": "t.conll"}).load("train")
    (tmp_path / "one.conll").write_text("word\n")
    with pytest.raises(DataError, match="list the file's columns in `header`"):
        tagging(tmp_path, {"train": "one.conll"}).load("train")


WRONG = {
    "no O": ({"labels": ["B-PER", "I-PER"]}, "'O' is missing"),
    "no I": ({"labels": ["O", "B-PER"]}, "'I-PER' is missing"),
    "stray": ({"labels": ["O", "B-PER", "I-PER", "NOUN"]}, "'NOUN' is not an IOB2 tag"),
    "no entities": ({"labels": ["NOUN", "VERB"]}, "use token_accuracy"),
    "two texts": ({"text": ["a", "b"]}, "text: takes 1 columns of a token-classification task"),
    "metric": (
        {"metrics": ["accuracy"]},
        "accuracy does not apply to a token-classification task; use entity_f1",
    ),
    "groups": ({"groups": ["label"]}, "only work for tasks with one label per text"),
}


@pytest.mark.parametrize(("changes", "reason"), WRONG.values(), ids=WRONG)
def test_a_wrong_task_file(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecipeError) as caught:
        tagging(tmp_path, {"train": "t.conll"}, **changes)
    assert reason in str(caught.value)


def test_parts_of_speech_are_tags_too(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("dogs NOUN\nbark VERB\n")
    task = tagging(tmp_path, {"train": "t.conll"}, labels=["NOUN", "VERB"], metrics=["token_accuracy"])
    assert task.load("train").labels == [[0, 1]]


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O B-PER I-PER O", [("PER", 1, 3)]),
        ("B-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("I-PER I-PER I-LOC", [("PER", 0, 2), ("LOC", 2, 3)]),  # as CoNLL's script reads what is no IOB2
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("O O", []),
        ("", []),
    ],
)
def test_entities(tags: str, found: list[tuple[str, int, int]]) -> None:
    assert entities(tags.split()) == [Entity(*one) for one in found]


def test_schemes() -> None:
    words = list("abcd")
    assert to_iob2(["I-X", "B-X", "I-X", "I-Y"], "iob1", words) == ["B-X", "B-X", "I-X", "B-Y"]
    assert to_iob2(["B-X", "I-X", "E-X", "S-Y"], "bioes", words) == ["B-X", "I-X", "I-X", "B-Y"]
    assert to_iob2(["B-X", "I-X", "O", "B-Y"], "iob2", words) == ["B-X", "I-X", "O", "B-Y"]
    with pytest.raises(BadRow, match="'I-Y' of 'd'"):
        to_iob2(["B-X", "I-X", "O", "I-Y"], "iob2", words)
    assert entity_types(["O", "B-X", "I-X", "NOUN", "X-ray"]) == {"X"}


def piece_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """WordPiece as BERT's, byte pairs as RoBERTa's (with the space in the piece), pieces as SentencePiece's."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if kind == "wordpiece":
        pieces += ["john", "smith", "##s", "saw", "new", "york", ".", "sm", "##ith"]
        made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
        made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    elif kind == "bytes":
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        made = Tokenizer(models.BPE({p: i for i, p in enumerate([*pieces, *alphabet])}, []))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
    else:
        pieces += ["▁", *"JohnSmitsawNewYrk.", "▁saw"]
        made = Tokenizer(models.Unigram([(piece, -1.0) for piece in dict.fromkeys(pieces)], unk_id=1))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
    ids = made.get_vocab()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def tagged_split(sentences: list[tuple[list[str], list[int]]]) -> Split:
    task = Task.named("conll2003")
    ids = [str(i) for i in range(len(sentences))]
    return Split(
        task,
        "train",
        [(" ".join(words),) for words, _ in sentences],
        [list(t) for _, t in sentences],
        ids,
        "",
    )


@pytest.mark.parametrize("kind", ["wordpiece", "bytes", "pieces"])
def test_the_first_sub_word_has_the_tag_and_no_other(kind: str) -> None:
    tokenizer = piece_tokenizer(kind)
    data = encode(tagged_split([(WORDS, NUMBERS), (["Smiths"], [5])]), tokenizer, 64)
    assert isinstance(data, Tagged)
    text = " ".join(WORDS)
    expected = tokenizer(text, return_offsets_mapping=True)
    assert data[0]["input_ids"] == expected["input_ids"]
    starts = np.cumsum([0, *(len(word) + 1 for word in WORDS[:-1])]).tolist()
    labelled = [i for i, label in enumerate(data[0]["labels"]) if label != -100]
    assert [data[0]["labels"][i] for i in labelled] == NUMBERS
    for i, start in zip(labelled, starts, strict=True):  # a piece may begin at the space before its word
        first, end = expected["offset_mapping"][i]
        assert first in (start, start - 1)
        assert end > start
    assert [label for label in data[1]["labels"] if label != -100] == [5]
    assert (data.cut, data.words_of(0).tolist()) == (0, [0, 1, 2, 3, 4, 5])


def test_words_behind_the_last_token_are_counted() -> None:
    tokenizer = piece_tokenizer("wordpiece")
    data = encode(
        tagged_split([(["smiths", "saw", "john", "."], [1, 2, 3, 4]), (["john"], [5])]), tokenizer, 5
    )
    assert isinstance(data, Tagged)
    assert tokenizer.convert_ids_to_tokens(data[0]["input_ids"]) == ["[CLS]", "smith", "##s", "saw", "[SEP]"]
    assert data[0]["labels"] == [-100, 1, -100, 2, -100]
    assert data.cut == 2
    with pytest.raises(DataError, match="no word of example '0' has a token within 2 tokens"):
        encode(tagged_split([(["john"], [1])]), tokenizer, 2)


def test_labels_are_padded_with_ignored_ones() -> None:
    tokenizer = piece_tokenizer("wordpiece")
    split = tagged_split([(["john", "saw"], [1, 0]), (["."], [0])])
    data = encode(split, tokenizer, 16)
    batch = collate_of(split.task, tokenizer)([data[0], data[1]])
    assert batch["labels"].tolist() == [[-100, 1, 0, -100], [-100, 0, -100, -100]]
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()
