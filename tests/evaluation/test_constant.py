"""The score of a constant answer, against sums by hand."""

from dataclasses import replace

import pytest

import tombola.tasks.metrics
from tombola.evaluation.evaluate import constant_score
from tombola.tasks import Split, Task
from tombola.tasks.metrics import metrics

LABELS = [0, 0, 0, 1]


def split(answers, **changes):
    ids = [str(index) for index in range(len(answers))]
    task = Task.model_validate(
        {"name": "t", "version": 1, "text": "sentence", "source": {"files": {"train": "t.tsv"}}, **changes}
    )
    texts = [("a",)] * len(answers)
    return Split(task=task, name="validation", texts=texts, labels=answers, ids=ids, source="here")


@pytest.mark.parametrize(
    ("metric", "expected"),
    [("accuracy", 0.75), ("mcc", 0.0), ("f1", 2 * 1 / (4 + 1)), ("macro_f1", (2 * 3 / 7) / 2)],
)
def test_the_best_class_for_all_by_the_headline_metric(metric, expected):
    found = constant_score(split(LABELS, labels=["bad", "good"], metrics=[metric]))
    assert found == pytest.approx(expected)


def test_the_best_class_of_a_metric_that_is_better_when_lower_has_the_lowest_score(monkeypatch):
    turned = replace(metrics["accuracy"], lower_is_better=True)
    monkeypatch.setattr(tombola.tasks.metrics, "_registered", lambda name: turned)
    assert constant_score(split(LABELS, labels=["bad", "good"], metrics=["accuracy"])) == 0.25


def test_one_number_for_all_correlates_with_nothing():
    assert constant_score(split([0.1, 0.5, 0.9, 0.2], kind="regression", metrics=["pearson"])) == 0
