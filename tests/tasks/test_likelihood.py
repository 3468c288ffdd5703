"""Prompts and answers as token ids, and the task files that ask for them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.words import decoder_tokenizer
from tombola.errors import DataError, RecipeError
from tombola.tasks import Task, encode, kind_of, unlabelled
from tombola.tasks.continuations import Continuation, Continuations, encode_continuations
from tombola.tasks.prompts import fill

WORDS = "the cat sat on a mat Q: A: {sat}"
TOKENIZER = decoder_tokenizer([WORDS])


def task(folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Task:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = {
        "name": "quiz",
        "version": 1,
        "kind": "multiple-choice",
        "text": ["question"],
        "metrics": ["accuracy", "accuracy_norm"],
        "source": {"files": {"train": "rows.jsonl"}},
        **changes,
    }
    (folder / "task.yaml").write_text(json.dumps(raw))
    return Task.from_file(folder / "task.yaml")


QUESTION = {"question": "the cat", "choices": ["sat", "a mat"], "label": 1}


@pytest.mark.parametrize(
    ("row", "settings"),
    [
        (QUESTION, {}),
        ({**QUESTION, "label": "B"}, {}),
        ({**QUESTION, "label": "a mat"}, {}),
        ({**QUESTION, "choices": {"text": ["sat", "a mat"], "label": ["1", "2"]}, "label": "2"}, {}),
        ({"question": "the cat", "one": "sat", "two": "a mat", "label": "1"}, {"choices": ["one", "two"]}),
    ],
    ids=["place", "letter", "text", "named", "columns"],
)
def test_choices_and_labels_in_the_forms_in_which_they_are_published(
    tmp_path: Path, row: dict[str, Any], settings: dict[str, Any]
) -> None:
    split = task(tmp_path, [row], settings={"prompt": "Q: {question} A:", **settings}).load("train")
    assert split.texts == [("Q: the cat A:", "sat", "a mat")]
    assert split.labels == [1]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**QUESTION, "label": 2}, "unknown label 2"),
        ({**QUESTION, "choices": ["sat"]}, "not a list of at least two answers"),
        ({**QUESTION, "choices": ["sat", " "]}, "an answer is empty"),
        ({**QUESTION, "choices": {"text": ["a", "b"], "label": ["1"]}}, "1 names for 2 answers"),
    ],
)
def test_rows_that_are_no_questions_are_refused(tmp_path: Path, row: dict[str, Any], reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        task(tmp_path, [row]).load("train")


def test_a_prompt_names_columns_of_text(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"\{answer\} is not a column of `text`; use \{question\}"):
        task(tmp_path, [QUESTION], settings={"prompt": "{answer}"})
    with pytest.raises(RecipeError, match="contains no text"):
        task(tmp_path, [QUESTION], settings={"prompt": "Q:"})
    assert fill("{a} {b}", {"a": "{b}", "b": "x"}) == "{b} x"


def test_unlabelled_questions(tmp_path: Path) -> None:
    own = task(tmp_path, [QUESTION])
    assert unlabelled(own, [{"question": "the cat", "choices": ["sat", "a mat"]}]).texts == [
        ("the cat", "sat", "a mat")
    ]
    with pytest.raises(DataError, match="reads a mapping with question, choices"):
        unlabelled(own, ["the cat"])


@pytest.mark.parametrize("adds_bos", [False, True])
def test_labels_are_the_tokens_of_the_answer_alone(adds_bos: bool) -> None:
    tokenizer = decoder_tokenizer([WORDS], adds_bos=adds_bos)
    rows = [
        Continuation(0, 0, "the cat", " sat on"),
        Continuation(0, 1, "the cat ", "on"),
        Continuation(1, 0, "", "a"),
    ]
    data = encode_continuations(rows, tokenizer, 64)
    ids = tokenizer.get_vocab()
    first, second, third = (data[row] for row in range(3))
    bos = [1] if adds_bos else []
    assert first["input_ids"] == [*bos, ids["the"], ids[" "], ids["cat"], ids[" "], ids["sat"], ids[" "]]
    assert first["labels"] == [-100] * (2 + adds_bos) + [ids[" "], ids["sat"], ids[" "], ids["on"]]
    assert second["labels"] == [-100] * (2 + adds_bos) + [ids[" "], ids["on"]]  # the space is the answer's
    assert third["input_ids"] == ([1] if adds_bos else [2])  # something must stand before the first token
    assert third["labels"] == [ids["a"]]
    assert (data.examples.tolist(), data.choices.tolist()) == ([0, 0, 1], [0, 1, 0])


def test_a_long_prompt_loses_its_beginning() -> None:
    (row,) = [Continuation(0, 0, "the cat sat on a mat", " the cat")]
    data = encode_continuations([row], TOKENIZER, 5)
    ids = TOKENIZER.get_vocab()
    assert data[0]["input_ids"] == [ids[" "], ids["mat"], ids[" "], ids["the"], ids[" "]]
    assert data[0]["labels"] == [-100, ids[" "], ids["the"], ids[" "], ids["cat"]]


def test_training_reads_right_answers_and_evaluation_all(tmp_path: Path) -> None:
    split = task(tmp_path, [QUESTION, {**QUESTION, "label": 0}]).load("train")
    right, every = encode(split, TOKENIZER, 64), kind_of(split.task).encode_scored(split, TOKENIZER, 64)
    assert isinstance(right, Continuations)
    assert isinstance(every, Continuations)
    assert (right.examples.tolist(), right.choices.tolist()) == ([0, 1], [1, 0])
    assert (every.examples.tolist(), every.choices.tolist()) == ([0, 0, 1, 1], [0, 1, 0, 1])


class TestClassification:
    """Labels by the likelihood of their answers, where a task file says so."""

    LIKELY = {"by": "likelihood", "prompt": "{question} A:", "answers": ["sat", "a mat"]}

    def task(self, folder: Path, **settings: Any) -> Task:
        rows = [{"question": "the cat", "label": "yes"}]
        return task(
            folder, rows, kind="classification", labels=["no", "yes"], metrics=["accuracy"], settings=settings
        )

    def test_the_model_is_a_language_model_and_nothing_else_changes(self, tmp_path: Path) -> None:
        plain, likely = self.task(tmp_path), self.task(tmp_path, **self.LIKELY)
        assert kind_of(plain).model == "AutoModelForSequenceClassification"
        assert kind_of(likely).model == "AutoModelForCausalLM"
        assert likely.single_label
        assert likely.load("train").texts == plain.load("train").texts
        data = encode(likely.load("train"), TOKENIZER, 64)
        ids = TOKENIZER.get_vocab()
        assert data[0]["labels"][-3:] == [ids["a"], ids[" "], ids["mat"]]

    def test_answers_are_the_names_of_labels_by_default(self, tmp_path: Path) -> None:
        own = self.task(tmp_path, by="likelihood", prompt="{question}")
        every = kind_of(own).encode_scored(own.load("train"), decoder_tokenizer(["the cat no yes"]), 64)
        assert len(every) == 2

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ({"by": "likelihood"}, "settings.prompt: contains no text"),
            ({"by": "likelihood", "prompt": "{text}"}, "not a column of `text`"),
            ({**LIKELY, "answers": ["sat"]}, "1 answers for 2 labels"),
            ({"prompt": "{question}"}, "only works with `by: likelihood`"),
            ({"by": "luck"}, "settings.by"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, tmp_path: Path, settings: dict[str, Any], reason: str
    ) -> None:
        with pytest.raises(RecipeError, match=reason):
            self.task(tmp_path, **settings)

    def test_a_recipe_may_ask_for_it(self) -> None:
        own = Task.named("sst2").with_settings({"by": "likelihood", "prompt": "{sentence} It was"})
        assert kind_of(own).evaluator == "label likelihoods"
        with pytest.raises(RecipeError, match=r"data.task_settings: settings.prompt: contains no text"):
            Task.named("sst2").with_settings({"by": "likelihood"})
