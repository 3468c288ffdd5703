"""Rows with and without tickets, on numbers that can be checked by hand."""

import statistics
from math import hypot

import pytest

from tests.results.builder import cell, result, score
from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import WITH, WITHOUT
from tombola.results.conclusion import conclude

SCORES = {  # by task, then seed: without, with tickets
    "a": {1: (0.80, 0.82), 2: (0.84, 0.88)},
    "b": {1: (0.60, 0.70), 2: (0.62, 0.70)},
}


def cells(scores=SCORES, sparsity=0.2):
    for task, seeds in scores.items():
        for seed, pair in seeds.items():
            for variant, value in zip((WITHOUT, WITH), pair, strict=True):
                ticket = cell(variant, value, None if variant == WITHOUT else sparsity, seed, task=task)
                yield ticket.model_copy(update={"axes": {"task": task, "seed": seed}})


def test_tasks_differences_and_their_average_over_seeds():
    a, b, average = result(*cells()).sharing("validation")
    assert (a.task, b.task, average.task) == ("a", "b", "average")
    assert a.difference.mean == pytest.approx(0.03)
    assert a.difference.std == pytest.approx(statistics.stdev([0.02, 0.04]))
    assert average.without.mean == pytest.approx((0.70 + 0.73) / 2)
    assert average.difference.mean == pytest.approx((0.06 + 0.06) / 2)
    assert average.difference.std == pytest.approx(0, abs=1e-12)
    assert a.remaining == average.remaining == 0.9


def test_tasks_that_have_no_seed_in_common_have_no_average():
    apart = {"a": {1: (0.80, 0.82)}, "b": {2: (0.62, 0.70)}}
    found = result(*cells(apart))
    assert [row.task for row in found.sharing()] == ["a", "b"]
    assert conclude(found) == "No seed has the scores of all tasks, so there is no average."


def test_one_seed_has_standard_errors():
    one = {task: {1: seeds[1]} for task, seeds in SCORES.items()}
    a, _, average = result(*cells(one)).sharing()
    assert a.without.std is None
    assert a.difference.spread == pytest.approx(hypot(score(0.80).stderr, score(0.82).stderr))
    assert average.without.spread == pytest.approx(hypot(score(0.80).stderr, score(0.60).stderr) / 2)


def test_a_task_without_a_ticket_keeps_everything():
    a, *_ = result(*cells(sparsity=None)).sharing()
    assert a.remaining == 1


def test_an_average_of_different_metrics_has_no_metric():
    def scored(task, metric):
        values = {"validation": {metric: Score(0.5, 0.1, 50, "x")}}
        for variant, sparsity in ((WITHOUT, None), (WITH, 0.2)):
            yield cell(variant, values, sparsity, task=task).model_copy(
                update={"axes": {"task": task, "seed": 1}}
            )

    rows = result(*scored("a", "accuracy"), *scored("b", "pearson")).sharing()
    assert [row.metric for row in rows] == ["accuracy", "pearson", None]


def test_other_results_have_no_rows():
    assert result(cell("dense", 0.9), cell("imp", 0.8, 0.5)).sharing() == []


def test_a_task_may_show_several_scores_and_the_average_takes_their_mean_first():
    """As published for GLUE: MNLI on two data sets, accuracy and F1 of MRPC, the correlation of CoLA alone."""
    found = {
        "mnli": {"validation": {"accuracy": (0.8, 0.82)}, "mismatched": {"accuracy": (0.7, 0.74)}},
        "mrpc": {"validation": {"accuracy": (0.6, 0.6), "f1": (0.9, 1.0)}},
        "cola": {"validation": {"mcc": (0.5, 0.6), "accuracy": (0.1, 0.1)}},
    }

    def cells():
        for task, data in found.items():
            for index, (variant, sparsity) in enumerate(((WITHOUT, None), (WITH, 0.2))):
                scores = {
                    on: {metric: Score(pair[index], 0.1, 50, "x") for metric, pair in own.items()}
                    for on, own in data.items()
                }
                made = cell(variant, scores, sparsity, recipe={"task": task}, task=task)
                yield made.model_copy(update={"axes": {"task": task, "seed": 1}})

    made = result(*cells())
    own = {
        "mnli": {"evaluate": {"on": ["validation", "mismatched"]}},
        "mrpc": {"metrics": ["accuracy", "f1"]},
    }
    made.record = made.record.model_copy(update={"recipe": {"per_task": own}})
    rows = made.sharing("validation")
    assert [(row.task, row.on, row.metric) for row in rows] == [
        ("mnli", "validation", "accuracy"), ("mnli", "mismatched", "accuracy"),
        ("mrpc", "validation", "accuracy"), ("mrpc", "validation", "f1"),
        ("cola", "validation", "mcc"), ("average", None, None),
    ]  # fmt: skip
    assert rows[-1].without.mean == pytest.approx((0.75 + 0.75 + 0.5) / 3)
    assert rows[-1].shared.mean == pytest.approx((0.78 + 0.8 + 0.6) / 3)
    assert rows[-1].without.spread == pytest.approx(0.1 * (0.5 + 0.5 + 1) ** 0.5 / 3)
    assert made.sharing("mismatched") == []
    assert made.sharing() == rows
