"""F1 and accuracy of label sets against scikit-learn, and the threshold that decides what is predicted."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from tests.tiny import tiny
from tests.words import word_tokenizer
from tombola.evaluation.evaluate import evaluate_split
from tombola.tasks import Split, Task
from tombola.tasks.definition import Source
from tombola.tasks.metrics import metrics

LABELS = ["joy", "anger", "fear"]
TASK = Task(
    name="feelings",
    version=1,
    kind="multi-label",
    text=["text"],
    labels=LABELS,
    metrics=["micro_f1", "macro_f1", "subset_accuracy"],
    source=Source(files={"train": ["t.tsv"]}),
)


def data(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, 3)) < [0.2, 0.5, 0.05]).astype(int)
    return labels - 0.5 + rng.normal(0, 0.6, size=(n, 3)), labels


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_f1_is_scikit_learns(average: str) -> None:
    logits, labels = data()
    found = metrics[f"{average}_f1"](logits, labels)
    assert found.value == pytest.approx(f1_score(labels, logits > 0, average=average))
    rng = np.random.default_rng(1)
    draws = [rng.integers(300, size=300) for _ in range(400)]
    spread = np.std([f1_score(labels[d], logits[d] > 0, average=average) for d in draws], ddof=1)
    assert found.stderr == pytest.approx(spread, rel=0.2)
    assert found.n == 300


def test_macro_f1_leaves_out_labels_that_nobody_names() -> None:
    logits, labels = data()
    logits[:, 2], labels[:, 2] = -1, 0
    assert metrics["macro_f1"](logits, labels).value == pytest.approx(
        f1_score(labels[:, :2], logits[:, :2] > 0, average="macro")
    )


def test_macro_f1_of_classes_is_what_it_was() -> None:
    logits, labels = data()
    classes = labels.argmax(axis=1)
    assert metrics["macro_f1"](logits, classes).value == pytest.approx(
        f1_score(classes, logits.argmax(axis=1), average="macro")
    )


def test_a_set_is_right_as_a_whole() -> None:
    logits = np.array([[1.0, -1, 2], [-1, -1, -1], [1, 1, -1], [1, -1, -1]])
    labels = np.array([[1, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]])
    found = metrics["subset_accuracy"](logits, labels)
    assert (found.value, found.stderr, found.n) == (0.5, 0.25, 4)


def test_the_threshold_decides_and_the_logits_stay() -> None:
    tokenizer = word_tokenizer(["a b c d"])
    texts = [("a b",), ("c",), ("d a",), ("b",)]
    split = Split(TASK, "train", texts, [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]], list("wxyz"), "")
    model = tiny(
        "bert", num_labels=3, id2label=dict(enumerate(LABELS)), label2id={n: i for i, n in enumerate(LABELS)}
    )
    plain = evaluate_split(model, tokenizer, split)
    low = evaluate_split(model, tokenizer, replace(split, task=TASK.with_settings({"threshold": 1e-9})))
    np.testing.assert_array_equal(plain.predictions, low.predictions)
    assert plain.scores["subset_accuracy"].value == pytest.approx(
        ((plain.predictions > 0) == np.array(split.labels)).all(axis=1).mean()
    )
    assert low.scores["subset_accuracy"].value == 0.25  # every label of every text
