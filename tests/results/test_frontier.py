"""The Pareto front: scores of different metrics, and models of different tasks, are never set against each other."""

import pytest

from tests.results.builder import cell, result
from tombola.evaluation.scores import Score
from tombola.report.frontier import frontier as page_frontier
from tombola.results.frontier import frontier


def shifted(variant, accuracy, perplexity, sparsity=None):
    scores = {
        "validation": {"accuracy": accuracy},
        "hans": {"accuracy": accuracy},
        "paws_wiki": {"accuracy": accuracy - 0.2},
        "wikitext2": {"perplexity": Score(perplexity, 0.5, 60, "delta method")},
    }
    return cell(variant, scores, sparsity)


def test_each_metric_is_an_aim():
    found = result(shifted("a", 0.9, 40.0), shifted("b", 0.8, 20.0), shifted("c", 0.8, 30.0))
    expected = [
        {
            "point": {"variant": variant},
            "out of distribution (accuracy)": pytest.approx(accuracy),
            "out of distribution (perplexity)": perplexity,
        }
        for variant, accuracy, perplexity in (("a", 0.8, 40.0), ("b", 0.7, 20.0))
    ]
    assert frontier(found, ["out of distribution"]) == expected
    (row, *_) = frontier(found)
    assert list(row) == ["point", "sparsity", "clean", *list(expected[0])[1:]]


def test_tasks_that_variants_set_are_not_compared():
    cells = [
        cell("film", {"validation": {"accuracy": 0.9}}),
        cell("film worse", {"validation": {"accuracy": 0.8}}),
        cell("pairs", {"validation": {"pearson": 0.5}}, recipe={"task": "stsb"}),
    ]
    assert [one["point"]["variant"] for one in frontier(result(*cells))] == ["film", "pairs"]
    assert page_frontier(result(*cells)) is None  # no task has more than two models
