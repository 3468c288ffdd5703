"""Rows with and without tickets, on numbers that can be checked by hand."""

import statistics
from math import hypot

import pytest

from tests.results.builder import cell, result, score
from tombola.evaluation.scores import Score
from tombola.pipeline.sharing import ALONE, RANDOM, WITH, WITHOUT
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


CONTROLS = {  # by task, then seed: with random tickets, alone
    "a": {1: (0.81, 0.78), 2: (0.85, 0.80)},
    "b": {1: (0.64, 0.66), 2: (0.68, 0.60)},
}


def control_cells(scores=CONTROLS):
    for task, seeds in scores.items():
        for seed, values in seeds.items():
            for variant, value, sparsity in zip((RANDOM, ALONE), values, (0.2, None), strict=True):
                made = cell(variant, value, sparsity, seed, task=task)
                yield made.model_copy(update={"axes": {"task": task, "seed": seed}})


def test_controls_are_estimated_like_the_trainings_and_paired_by_seed():
    a, b, average = result(*cells(), *control_cells()).sharing("validation")
    assert a.random.mean == pytest.approx(0.83)
    assert b.alone.mean == pytest.approx(0.63)
    assert a.random_difference.mean == pytest.approx(0.02)
    assert a.random_difference.std == pytest.approx(statistics.stdev([0.01, 0.03]))
    assert average.random_difference.mean == pytest.approx((0.035 + 0.025) / 2)
    assert average.random_difference.std == pytest.approx(statistics.stdev([0.035, 0.025]))
    assert average.alone.mean == pytest.approx((0.72 + 0.70) / 2)
    assert a.remaining == 0.9
    plain = result(*cells()).sharing("validation")
    names = ("random", "random_difference", "alone")
    assert all(getattr(row, name) is None for row in plain for name in names)
    both = result(*cells(), *control_cells()).sharing("validation")
    assert [row.model_copy(update=dict.fromkeys(names)) for row in both] == plain


def test_a_seed_without_a_control_still_counts_for_the_trainings():
    some = {"a": CONTROLS["a"], "b": {1: CONTROLS["b"][1]}}
    _, b, average = result(*cells(), *control_cells(some)).sharing("validation")
    assert (b.difference.seeds, b.random.seeds, b.random_difference.seeds) == (2, 1, 1)
    assert (average.difference.seeds, average.random_difference.seeds) == (2, 1)
    assert average.random_difference.mean == pytest.approx(0.035)
    *_, average = result(*cells(), *control_cells({"a": CONTROLS["a"]})).sharing("validation")
    assert average.random is average.random_difference is average.alone is None


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
