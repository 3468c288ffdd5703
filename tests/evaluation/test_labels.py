"""Which output of a model means which label, and the breakdown of scores by group."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from tests.evaluation.test_predict import SEGMENTS, named, split_of
from tombola.errors import ModelError
from tombola.evaluation.classes import group_scores
from tombola.evaluation.evaluate import evaluate_split
from tombola.evaluation.labels import label_order, order_doubts
from tombola.evaluation.leakage import leakage_note, leaked
from tombola.tasks import Split, Task

MNLI, HANS = Task.named("mnli"), Task.named("hans")


def config(*names: str, **label2id: int) -> Any:
    return SimpleNamespace(num_labels=len(names), id2label=dict(enumerate(names)), label2id=label2id)


def test_an_nli_model_of_another_order_is_rearranged_by_name() -> None:
    order = label_order(config("CONTRADICTION", "NEUTRAL", "ENTAILMENT"), MNLI)
    assert order.outputs == [[2], [1], [0]]
    assert "rearranged" in order.notes[0]
    np.testing.assert_array_equal(order.arrange(np.array([[1.0, 2, 3]])), [[3, 2, 1]])


def test_hans_takes_the_models_own_prediction_and_maps_it() -> None:
    """Three classes become two by the largest logit: added probabilities would call this one non-entailment."""
    order = label_order(config("entailment", "neutral", "contradiction"), HANS)
    assert order.outputs == [[0], [1, 2]]
    assert "merged" in order.notes[0]
    logits = np.array([[1.0, 0.8, 0.7], [0.5, 0.8, -1.0], [0.1, -3.0, 0.2]])
    assert order.arrange(logits).argmax(axis=1).tolist() == [0, 1, 1]
    assert softmax(logits[0])[1:].sum() > softmax(logits[0])[0]


def test_outputs_without_names_are_taken_in_place_or_refused() -> None:
    order = label_order(config("LABEL_0", "LABEL_1", "LABEL_2"), MNLI)
    assert (order.outputs, order.named, order.notes) == ([[0], [1], [2]], False, [])
    assert not label_order(config("0", "1"), HANS).named
    with pytest.raises(ModelError, match=r"3 outputs, but the task 'hans' needs 2.*config\.id2label"):
        label_order(config("LABEL_0", "LABEL_1", "LABEL_2"), HANS)


def test_contradictory_names_are_refused() -> None:
    with pytest.raises(ModelError, match="contradicts itself"):
        label_order(
            config("entailment", "neutral", "contradiction", entailment=2, neutral=1, contradiction=0), MNLI
        )
    with pytest.raises(ModelError, match=r"set id2label in the model's config\.json"):
        label_order(config("entailment", "neutral", "neutral"), MNLI)
    with pytest.raises(ModelError, match=r"set id2label in the model's config\.json"):
        label_order(config("world", "sports"), Task.named("rte"))


def test_labels_that_are_numbers_can_be_named_in_the_task_file() -> None:
    numbered = MNLI.model_copy(update={"labels": ["0", "1", "2"]})
    with pytest.raises(ModelError, match=r"or, .*set `labels: \[good, bad, mixed\]` in the task file"):
        label_order(config("good", "bad", "mixed"), numbered)
    with pytest.raises(ModelError, match=r"order of the model's outputs\.$"):
        label_order(config("good", "bad", "mixed"), MNLI)


def test_a_wrong_order_without_names_shows_in_its_predictions() -> None:
    labels = np.arange(90) % 3
    turned = np.eye(3)[(labels + 1) % 3]
    (doubt,) = order_doubts(MNLI, turned, labels)
    assert "correct for 0%" in doubt
    assert "['contradiction', 'entailment', 'neutral'], they would be correct for 100%" in doubt
    assert order_doubts(MNLI, np.eye(3)[labels], labels) == []
    assert order_doubts(MNLI, turned[:20], labels[:20]) == []


def pairs(heuristics: list[str], labels: list[int]) -> Split:
    texts = split_of("mnli", n=len(labels), longest=8).texts
    return Split(
        HANS, "validation", texts, labels, list(map(str, range(len(labels)))), "", {"heuristic": heuristics}
    )


def test_scores_are_broken_down_by_heuristic_and_label() -> None:
    labels = [0, 1] * 30
    heuristics = ["lexical_overlap"] * 20 + ["subsequence"] * 40
    result = evaluate_split(
        named(["entailment", "neutral", "contradiction"]), SEGMENTS, pairs(heuristics, labels)
    )
    assert next(iter(result.scores)) == "accuracy"
    right = result.predictions.argmax(axis=1) == labels
    first = result.scores["accuracy/lexical_overlap"]
    assert (first.value, first.n) == (right[:20].mean(), 20)
    assert result.scores["accuracy/non-entailment"].value == right[1::2].mean()
    assert result.scores["accuracy/subsequence/entailment"].value == right[20::2].mean()
    assert len(result.scores) == 2 + 2 + 2 + 4  # accuracy and AUC of all, then the groups
    assert result.predictions.shape == (60, 2)


def test_equal_values_of_two_columns_are_two_groups() -> None:
    task = HANS.model_copy(update={"groups": ["sarcasm", "slang", "label"]})
    columns = {"sarcasm": ["yes", "no", "no", "no"], "slang": ["yes", "yes", "yes", "maybe"]}
    split = Split(task, "validation", [("a", "b")] * 4, [0, 1, 0, 1], list("0123"), "", columns)
    found, _ = group_scores(split, np.eye(2)[[0, 0, 0, 0]])
    assert {name: (score.value, score.n) for name, score in found.items()} == {
        "accuracy/sarcasm=yes": (1.0, 1),
        "accuracy/no": (1 / 3, 3),
        "accuracy/slang=yes": (2 / 3, 3),
        "accuracy/maybe": (0.0, 1),
        "accuracy/entailment": (1.0, 2),
        "accuracy/non-entailment": (0.0, 2),
    }


def test_a_group_without_the_metric_is_noted() -> None:
    task = HANS.model_copy(update={"metrics": ["auc"], "groups": ["source"]})
    columns = {"source": ["a", "a", "b", "b"]}
    split = Split(task, "validation", [("a", "b")] * 4, [0, 1, 1, 1], list("0123"), "", columns)
    found, notes = group_scores(split, np.eye(2)[[0, 1, 1, 0]])
    assert {name: score.value for name, score in found.items()} == {"auc/a": 1.0}
    assert notes == [
        "hans/validation has no auc/b: auc needs examples of both labels; the data has only one of them."
    ]


def test_leakage_is_counted_whatever_case_and_punctuation() -> None:
    task = Task.named("rte")
    train = Split(task, "train", [("The dog .", "A cat !"), ("one", "two")], [0, 1], ["0", "1"], "")
    test = Split(
        task,
        "validation",
        [("the dog", "a  CAT"), ("two", "one"), ("the", "dog")],
        [0, 1, 1],
        ["0", "1", "2"],
        "",
    )
    assert leaked(train, test) == 1
    assert leakage_note(train, test) == (
        "1 of 3 examples of rte/validation also occur in the training data (rte/train)."
    )
    assert leakage_note(train, train) is None
    assert leakage_note(test, Split(task, "other", [("x", "y")], [0], ["0"], "")) is None


def test_signs_emoji_and_punctuation_alone_tell_texts_apart() -> None:
    texts = ["की", "कि", "😀", "😡", "so 😀", "so 😡", ":)", ":(", "!"]
    numbers = list(map(str, range(len(texts))))
    split = Split(Task.named("sst2"), "train", [(text,) for text in texts], [0] * len(texts), numbers, "")
    assert len(set(split.text_keys)) == len(texts)
