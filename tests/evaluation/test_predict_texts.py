"""Predictions on texts without labels are those of the model on the same texts with labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.evaluation.test_label_sets import TASK as FEELINGS
from tests.tasks.test_token_classification import piece_tokenizer
from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.errors import DataError
from tombola.evaluation.evaluate import predict_split
from tombola.evaluation.evaluators import Prediction
from tombola.tasks import Task, unlabelled

TOKENIZER = word_tokenizer(["good bad fine film plot where is anna oslo rome"])
TEXTS = ["good film", "bad", "fine plot"]


def model_for(task: Task, head: str = "sequence-classification", **config: Any):  # type: ignore[no-untyped-def]
    names = task.labels
    if names:
        config |= {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}
    return tiny("bert", head, vocab_size=len(TOKENIZER), **config)


def predict_texts(model: Any, tokenizer: Any, rows: Any, task: Task, **options: Any) -> list[Prediction]:
    return predict_split(model, tokenizer, unlabelled(task, rows), **options)


def logits(model: Any, *columns: list[str]) -> torch.Tensor:
    with torch.no_grad():
        return torch.cat(
            [model(**TOKENIZER(*row, return_tensors="pt")).logits for row in zip(*columns, strict=True)]
        )


def close(found: dict[str, float], expected: torch.Tensor) -> None:
    np.testing.assert_allclose(list(found.values()), expected.numpy(), atol=1e-5)


def test_classification() -> None:
    task = Task.named("sst2")
    model = model_for(task)
    found = predict_texts(model, TOKENIZER, TEXTS, task)
    for one, expected in zip(found, logits(model, TEXTS).softmax(-1), strict=True):
        assert one.label == ("negative", "positive")[int(expected.argmax())]
        assert list(one.probabilities) == ["negative", "positive"]
        close(one.probabilities, expected)  # type: ignore[arg-type]


def test_texts_from_memory_are_trimmed_as_those_from_files_are() -> None:
    assert unlabelled(Task.named("sst2"), ["good film\n"]).texts == [("good film",)]
    question = (" who?", "anna \n")
    assert unlabelled(Task.named("squad"), [question]).texts == [question]


def test_pairs_as_tuples_and_as_columns() -> None:
    task = Task.named("rte")
    model = model_for(task)
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    found = predict_texts(model, TOKENIZER, pairs, task)
    assert found == predict_texts(
        model, TOKENIZER, [{"sentence1": a, "sentence2": b} for a, b in pairs], task
    )
    for one, expected in zip(found, logits(model, TEXTS, TEXTS[::-1]).softmax(-1), strict=True):
        close(one.probabilities, expected)  # type: ignore[arg-type]


def test_regression() -> None:
    task = Task.named("stsb")
    model = model_for(task, num_labels=1)
    found = predict_texts(model, TOKENIZER, [(text, text) for text in TEXTS], task)
    expected = logits(model, TEXTS, TEXTS).flatten()
    np.testing.assert_allclose([one.label for one in found], expected.numpy(), atol=1e-5)  # type: ignore[arg-type]
    assert found[0].probabilities == {}


def test_several_labels() -> None:
    model = model_for(FEELINGS)
    for one, expected in zip(
        predict_texts(model, TOKENIZER, TEXTS, FEELINGS), logits(model, TEXTS).sigmoid(), strict=True
    ):
        close(one.probabilities, expected)  # type: ignore[arg-type]
        names = FEELINGS.labels or []
        assert one.label == tuple(name for name, share in zip(names, expected, strict=True) if share > 0.5)


@pytest.mark.parametrize(
    "rows", [["john smiths ."], [["john", "smiths", "."]], [{"tokens": "john smiths ."}]]
)
def test_tags(rows: list[Any]) -> None:
    task, tokenizer = Task.named("conll2003"), piece_tokenizer("wordpiece")
    model = model_for(task, "token-classification")
    (found,) = predict_texts(model, tokenizer, rows, task)
    with torch.no_grad():
        expected = model(**tokenizer("john smiths .", return_tensors="pt")).logits[0].softmax(-1)
    assert found.label == tuple((task.labels or [])[int(expected[place].argmax())] for place in (1, 2, 4))
    for one, place in zip(found.probabilities, (1, 2, 4), strict=True):
        close(one, expected[place])  # type: ignore[arg-type]
    (cut,) = predict_texts(model, tokenizer, rows, task, max_length=5)
    assert (cut.label[2], cut.probabilities[2]) == ("O", {})  # type: ignore[index]


def test_answers() -> None:
    task = Task.named("squad")
    model = tiny("bert", "question-answering", vocab_size=len(TOKENIZER))
    (found,) = predict_texts(model, TOKENIZER, [("where is anna", "oslo rome anna")], task)
    assert isinstance(found, Prediction)
    assert found.label in {"oslo", "rome", "anna", "oslo rome", "rome anna", "oslo rome anna"}


def test_a_file_needs_no_labels(tmp_path: Path) -> None:
    task = Task.named("cola")  # its test set has a header, its training set has none
    model = model_for(task)
    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tgood film\n1\tbad\n2\tfine plot\n")
    assert predict_texts(model, TOKENIZER, tmp_path / "test.tsv", task) == predict_texts(
        model, TOKENIZER, TEXTS, task
    )
    (tmp_path / "test.jsonl").write_text("".join(json.dumps({"sentence": text}) + "\n" for text in TEXTS))
    assert len(predict_texts(model, TOKENIZER, str(tmp_path / "test.jsonl"), task)) == 3


def test_every_row_of_a_test_set_is_answered(tmp_path: Path) -> None:
    """Where training drops rows that are not whole, a test set's are needed: the server counts them."""
    (tmp_path / "test.tsv").write_text("id\tquestion1\tquestion2\n0\tgood\tbad\n1\tgood\t\n")
    task = Task.named("qqp")
    assert len(predict_texts(model_for(task), TOKENIZER, tmp_path / "test.tsv", task)) == 2
    (tmp_path / "test.tsv").write_text("id\tquestion1\tquestion2\n0\tgood\tbad\n1\tgood\n")
    with pytest.raises(DataError, match=r"test\.tsv:3: 2 fields instead of 3"):
        predict_texts(model_for(task), TOKENIZER, tmp_path / "test.tsv", task)


def test_rows_that_do_not_fit() -> None:
    task = Task.named("rte")
    model = model_for(task)
    for rows, reason in [
        (["alone"], "Row 0: 'alone' where rte reads sentence1, sentence2"),
        ([("a", "b"), {"sentence1": "a"}], "Row 1: no 'sentence2'"),
        ([("a", " ")], "Row 0: the text is empty"),
        ([("a", "b"), ("a", "b \ud83d")], "Row 1: contains half of a character"),
        (
            [("a", "b"), float("nan")],
            "Row 1: nan where rte reads sentence1, sentence2",
        ),  # a gap in a data frame
        ([None], "Row 0: None where rte reads"),
        ([], "nothing to predict"),
    ]:
        with pytest.raises(DataError, match=reason):
            predict_texts(model, TOKENIZER, rows, task)
    with pytest.raises(DataError, match="wikitext is a masked-lm task, which has nothing to predict"):
        predict_texts(
            tiny("bert", "masked-lm", vocab_size=len(TOKENIZER)), TOKENIZER, ["good"], Task.named("wikitext")
        )
