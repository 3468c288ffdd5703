"""SQuAD's files, and the windows of their contexts: every answer is found again, character for character."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.words import python_tokenizer, word_tokenizer, xlnet_tokenizer
from tombola.errors import DataError
from tombola.tasks import Answers, Collate, Split, Task, Windows, collate_of, encode

CONTEXT = "  The cat sat on the mat, and the dog lay by it. "
WORDS = [f"w{i}" for i in range(50)]
TOKENIZER = word_tokenizer([" ".join(WORDS)], max_length=10_000)


def question(number: int = 1, text: str = "cat", at: int = 6, **more: Any) -> dict[str, Any]:
    answers = [{"text": text, "answer_start": at}]
    return {"id": f"q{number}", "question": "Who sat?", "answers": answers, **more}


def squad(folder: Path, *questions: Any, name: str = "train-v1.1.json") -> Path:
    (folder / "squad").mkdir(exist_ok=True)
    articles = [{"title": "T", "paragraphs": [{"context": CONTEXT, "qas": list(questions)}]}]
    (folder / "squad" / name).write_text(json.dumps({"version": "1.1", "data": articles}))
    return folder


def split_of(*examples: tuple[str, str, Answers], task: str = "squad") -> Split:
    return Split(
        Task.named(task),
        "validation",
        [(asked, context) for asked, context, _ in examples],
        [answers for *_, answers in examples],
        [str(i) for i in range(len(examples))],
        "memory",
    )


def test_squad_is_read_with_its_answers_in_place(tmp_path: Path) -> None:
    several = question(2, answers=[{"text": "mat", "answer_start": 0}, {"text": "mat", "answer_start": 21}])
    split = Task.named("squad").load("train", squad(tmp_path, question(), several))
    assert split.ids == ["q1", "q2"]
    assert split.texts == [("Who sat?", CONTEXT)] * 2  # the context's white space stays
    assert split.labels == [Answers(("cat",), (6, 9)), Answers(("mat", "mat"), (21, 24))]
    assert len(split.sample(1, seed=0)) == 1


def test_every_gold_answer_changes_the_fingerprint(tmp_path: Path) -> None:
    task = Task.named("squad")
    one = task.load("train", squad(tmp_path, question())).fingerprint
    other = task.load("train", squad(tmp_path, question(text="ca"))).fingerprint
    assert one != other
    assert one == task.load("train", squad(tmp_path, question())).fingerprint


def test_a_plain_list_and_json_lines_have_the_hubs_columns(tmp_path: Path) -> None:
    row = {
        "id": "a",
        "context": CONTEXT,
        "question": "Who?",
        "answers": {"text": ["dog"], "answer_start": [34]},
    }
    (tmp_path / "a.json").write_text(json.dumps([row]))
    (tmp_path / "b.jsonl").write_text(json.dumps(row))
    (tmp_path / "mine.yaml").write_text(
        "{name: mine, version: 1, kind: question-answering, text: [question, context], metrics: [squad_f1],"
        " source: {files: {train: a.json, validation: b.jsonl}}}"
    )
    task = Task.from_file(tmp_path / "mine.yaml")
    for name in ("train", "validation"):
        assert task.load(name).labels == [Answers(("dog",), (34, 37))]


def test_squad_2_has_questions_without_an_answer(tmp_path: Path) -> None:
    impossible = question(2, is_impossible=True, plausible_answers=[{"text": "dog", "answer_start": 34}])
    folder = squad(tmp_path, question(), impossible, question(3, answers=[]), name="train-v2.0.json")
    split = Task.named("squad_v2").load("train", folder)
    assert split.labels[1:] == [Answers((), None)] * 2


def test_an_answer_off_its_place_is_dropped_counted_and_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = [question(number) for number in range(200)]
    split = Task.named("squad").load("train", squad(tmp_path, *good, question(999, at=7)))
    assert (len(split), split.dropped) == (200, 1)
    assert "paragraph 1, question 201: the answer 'cat' is not at character 7" in caplog.text


BAD = {
    "no answer": (question(answers=[]), "no answer; to allow such questions, set `unanswerable: true`"),
    "no offset": (question(answers=[{"text": "cat"}]), "the answers are not a list with"),
    "offset as text": (question(at="6"), "not 'cat' and '6'"),
    "negative offset": (question(at=-44), "is not at character -44"),
    "blank answer": (question(text=" ", at=0), "an answer is a text"),
    "no question": (question(question=None), "no text in column 'question'"),
    "a string": ("?", "not a JSON object"),
}


@pytest.mark.parametrize(("row", "reason"), BAD.values(), ids=BAD)
def test_a_bad_question_is_named_by_file_and_place(tmp_path: Path, row: Any, reason: str) -> None:
    with pytest.raises(DataError) as caught:
        Task.named("squad").load("train", squad(tmp_path, row, row))
    assert "train-v1.1.json: article 1, paragraph 1, question 1: " in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", ":1: not JSON"),
        ('{"questions": []}', ": there is no list 'data'"),
        (
            '{"data": [{"paragraphs": [{"context": "a"}]}]}',
            ": article 1, paragraph 1: there is no list 'qas'",
        ),
        ('{"data": [3]}', ": article 1: there is no list 'paragraphs'"),
        ('{"data": []}', ": contains no rows"),
    ],
)
def test_a_file_that_is_not_squads(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "squad").mkdir()
    (tmp_path / "squad/train-v1.1.json").write_text(content)
    with pytest.raises(DataError) as caught:
        Task.named("squad").load("train", tmp_path)
    assert f"train-v1.1.json{reason}" in str(caught.value)


def example(length: int, first: int, last: int) -> tuple[str, str, Answers]:
    """A context of words, of which the first to the last are the answer, and a question of three."""
    words = [WORDS[i % 50] for i in range(length)]
    start = len(" ".join(words[:first])) + (first > 0)
    answer = " ".join(words[first : last + 1])
    return "w1 w2 w3", " ".join(words), Answers((answer,), (start, start + len(answer)))


@given(st.integers(1, 200), st.integers(14, 80), st.data())
@settings(max_examples=60, deadline=None)
def test_windows_cover_the_context_and_lead_back_to_its_characters(
    length: int, max_length: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, length - 1))
    last = data.draw(st.integers(first, min(first + 3, length - 1)))
    asked, context, answers = example(length, first, last)
    windows = encode(split_of((asked, context, answers)), TOKENIZER, max_length)
    assert isinstance(windows, Windows)
    assert windows.lengths.max() <= max_length
    covered = np.zeros(len(context), dtype=bool)
    held = 0
    for i in range(len(windows)):
        tokens = windows[i]
        spans = windows.spans[windows.offsets[i] : windows.offsets[i + 1]]
        assert ((spans >= 0).all(axis=1) == (np.array(tokens["token_type_ids"]) == 1))[:-1].all()
        for token, (a, b) in zip(tokens["input_ids"], spans, strict=True):
            if a >= 0:
                assert TOKENIZER.convert_ids_to_tokens(token) == context[a:b]
                covered[a:b] = True
        start, end = tokens["labels"]
        if start:
            held += 1
            assert (spans[start, 0], spans[end, 1]) == answers.span
        else:
            assert end == 0
    assert covered[[i for i, character in enumerate(context) if character != " "]].all()
    assert held >= 1  # an answer of up to 4 words stands whole in a window: half a window is at least 4


def test_a_window_is_what_the_tokenizer_gives_for_the_pair() -> None:
    asked, context, answers = example(40, 3, 4)
    windows = encode(split_of((asked, context, answers)), TOKENIZER, 384)
    plain = TOKENIZER(asked, context)
    assert windows[0]["input_ids"] == plain["input_ids"]
    assert windows[0]["token_type_ids"] == plain["token_type_ids"]


def test_windows_begin_every_128_tokens_of_a_long_context() -> None:
    windows = encode(split_of(example(800, 0, 0)), TOKENIZER, 384)
    room = 384 - 3 - 3
    assert windows.lengths.tolist() == [384, 384, 384, 384, 800 - 4 * 128 + 6]
    begins = [windows.spans[windows.offsets[i] + 5, 0] for i in range(len(windows))]
    words = [0, *np.cumsum([len(WORDS[i % 50]) + 1 for i in range(800)])]
    assert begins == [words[i * 128] for i in range(5)]
    assert 4 * 128 + room >= 800


def test_an_answer_outside_of_the_window_or_none_at_all_is_the_first_token() -> None:
    windows = encode(split_of(example(800, 790, 792)), TOKENIZER, 384)
    assert windows.labels[:3].tolist() == [[0, 0]] * 3
    assert (windows.labels[-1] > 0).all()
    silent = encode(split_of(("w1", "w2 w3", Answers((), None)), task="squad_v2"), TOKENIZER, 384)
    assert silent.labels.tolist() == [[0, 0]]


def test_a_question_never_crowds_out_its_context() -> None:
    asked = " ".join(WORDS * 4)
    windows = encode(split_of((asked, "w7 w8", Answers(("w8",), (3, 5)))), TOKENIZER, 20)
    assert windows.lengths.tolist() == [3 + 8 + 2]
    with pytest.raises(DataError, match="no room for a question"):
        encode(split_of((asked, "w7", Answers(("w7",), (0, 2)))), TOKENIZER, 4)


def test_a_tokenizer_that_knows_no_characters_or_puts_cls_last_is_refused(tmp_path: Path) -> None:
    split = split_of(("a", "b c", Answers(("c",), (2, 3))))
    with pytest.raises(
        DataError, match=r"question-answering task needs a fast tokenizer.*\(PhobertTokenizer\)"
    ):
        encode(split, python_tokenizer(tmp_path), 20)
    with pytest.raises(DataError, match=r"inputs begin with \[CLS\].*\(XLNetTokenizer\)"):
        encode(split, xlnet_tokenizer(), 20)


def test_the_answer_may_end_inside_a_token() -> None:
    windows = encode(split_of(("w1", "w22 w33", Answers(("w3",), (4, 6)))), TOKENIZER, 20)
    assert windows.labels.tolist() == [[4, 4]]


def test_batches_are_padded_on_the_right_whatever_the_tokenizer_says() -> None:
    left = word_tokenizer([" ".join(WORDS)])
    left.padding_side = "left"
    split = split_of(example(5, 1, 1), example(9, 1, 1))
    batch = collate_of(split.task, left)([encode(split, left, 32)[i] for i in range(2)])
    assert batch["labels"].tolist() == [[6, 6], [6, 6]]
    assert (batch["input_ids"][:, 6] == left.convert_tokens_to_ids("w1")).all()
    context = batch["attention_mask"] * (torch.arange(batch["input_ids"].shape[1]) >= 5)
    context *= batch["input_ids"] != left.sep_token_id
    context[:, 0] = 1
    assert torch.equal(batch["answerable"], context)
    assert type(collate_of(Task.named("sst2"), left)) is Collate
