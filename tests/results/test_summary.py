"""Statistics over seeds, on numbers that can be checked by hand."""

import statistics

import numpy as np
import pytest

from tests.results.builder import cell, measured, result, score
from tombola.evaluation.intervals import wilson
from tombola.evaluation.scores import DELTA, Score
from tombola.results.differences import estimate_difference
from tombola.results.statistics import paired_t
from tombola.results.summary import Summary, estimate_scores, estimate_values, parameters_left

IMP = {"search": {"method": "iterative"}}
DENSE = [cell("dense", value, seed=seed) for seed, value in enumerate((0.80, 0.82, 0.84))]


def test_means_deviations_and_t_intervals_over_seeds():
    (row,) = result(*DENSE).summaries()
    found = row.scores["validation"]
    assert row.seeds == found.seeds == 3
    assert found.mean == pytest.approx(0.82)
    assert found.std == found.spread == pytest.approx(statistics.stdev([0.80, 0.82, 0.84]))
    assert found.low == pytest.approx(0.82 - 4.302653 * 0.02 / 3**0.5, abs=1e-5)
    assert found.high == pytest.approx(0.82 + 4.302653 * 0.02 / 3**0.5, abs=1e-5)


def test_the_interval_of_a_share_stays_between_0_and_1():
    two = estimate_scores([score(0.90), score(0.95)], "accuracy")
    assert (two.low, two.high) == (pytest.approx(0.925 - 12.7062 * 0.025, abs=1e-4), 1.0)
    one = estimate_scores([Score(0.01, 0.02, 50, "bootstrap of 500")], "macro_f1")
    assert (one.low, one.high) == (0.0, pytest.approx(0.01 + 1.96 * 0.02, abs=1e-4))
    correlation = estimate_scores([Score(0.01, 0.02, 50, "bootstrap of 500")], "mcc")
    assert correlation.low == pytest.approx(0.01 - 1.96 * 0.02, abs=1e-4)


def test_one_seed_has_its_standard_error_and_wilsons_interval():
    found = estimate_scores([score(0.05, n=20)], "accuracy")
    assert found.std is None
    assert found.spread == found.stderr == pytest.approx((0.05 * 0.95 / 20) ** 0.5)
    assert (found.low, found.high) == wilson(1, 20)


def test_a_correlation_of_one_seed_has_fishers_interval():
    found = estimate_scores([Score(-0.3, 0.91 * 0.1, 103, "Fisher z")], "pearson")
    assert (found.low, found.high) == pytest.approx(
        np.tanh(np.arctanh(-0.3) + np.array([-0.196, 0.196])), abs=1e-4
    )


def test_seeds_with_one_measurement_are_as_sure_of_the_speed_as_one_run():
    same = Summary(tuple(cell("heads", 0.8, 0.5, seed, measured=measured(1.42)) for seed in (1, 2, 3)))
    assert same.speedup == measured(1.42).speedup


def test_seeds_that_score_the_same_are_as_sure_as_one_run():
    found = estimate_scores([score(0.1)] * 3, "accuracy")
    assert found.mean == 0.1
    assert found.std == 0
    assert found.tolerance == found.stderr == pytest.approx(0.03)
    assert (found.low, found.high) == wilson(10, 100)


def test_values_of_one_seed_have_the_given_error():
    found = estimate_values([0.02], [0.01])
    assert (found.low, found.high) == (pytest.approx(0.0004, abs=1e-5), pytest.approx(0.0396, abs=1e-5))


def test_the_baseline_key_is_what_a_ticket_shares_with_its_dense_model():
    (row,) = result(cell("imp", 0.8, 0.5, recipe=IMP, **{"task": "rte", "search.step": 0.1})).summaries()
    assert row.baseline_key == {"task": "rte"}
    assert row.axes == {"task": "rte", "search.step": 0.1, "draw.sparsity": 0.5}
    assert row.label == "imp · task rte · step 0.1 · 50 % sparse"
    rows = result(*(cell("imp", 0.8, 0.5, runtime=one) for one in ("transformers", "onnx_int8"))).summaries()
    assert [one.label for one in rows] == ["imp · 50 % sparse", "imp · ONNX int8 · 50 % sparse"]


def test_masks_that_differ_between_seeds_are_averaged():
    (row,) = result(
        cell("imp", 0.8, 0.5, 1), cell("imp", 0.8, 0.5, 2).model_copy(update={"mask": None})
    ).summaries()
    assert row.sparsity == 0.25
    assert not row.dense


def test_a_dense_model_has_all_parameters_that_its_tickets_know_of():
    dense, ticket = result(cell("dense", 0.9), cell("imp", 0.8, 0.5)).summaries()
    assert (dense.left, ticket.left) == (None, 750)
    assert parameters_left([dense, ticket]) == [1000, 750]


def test_the_speedup_over_seeds_is_a_geometric_mean_with_a_t_interval():
    cells = [
        cell("heads", 0.8, 0.5, seed, measured=measured(ratio))
        for seed, ratio in ((1, 1.0), (2, 2.0), (3, 4.0))
    ]
    (row,) = result(*cells).summaries()
    half = 4.302653 * statistics.stdev([0.0, 1.0, 2.0]) / 3**0.5
    assert row.speedup[1].ratio == pytest.approx(2.0)
    assert row.speedup[1].low == pytest.approx(2.0 / 2**half, rel=1e-5)
    assert row.speedup[1].high == pytest.approx(2.0 * 2**half, rel=1e-5)


def test_one_seed_keeps_the_interval_that_was_measured_and_a_dense_model_has_none():
    dense, ticket = result(
        cell("dense", 0.9, measured=measured()), cell("heads", 0.8, 0.5, measured=measured(1.4))
    ).summaries()
    assert dense.speedup == {}
    assert (ticket.speedup[1].low, ticket.speedup[1].high) == (pytest.approx(1.35), pytest.approx(1.45))
    assert ticket.shipped.milliseconds[1] == (pytest.approx(10), pytest.approx(10 / 1.4))


def test_the_perplexities_of_destroyed_models_have_finite_statistics():
    huge = [1e300, 2e300, 4e300]
    rows = [
        *(
            cell("dense", {"validation": {"word_perplexity": Score(v, v / 2, 9, DELTA)}}, None, seed)
            for seed, v in enumerate(huge, 1)
        ),
        *(
            cell("imp", {"validation": {"word_perplexity": Score(2 * v, v, 9, DELTA)}}, 0.5, seed)
            for seed, v in enumerate(huge, 1)
        ),
    ]
    found = result(*rows)
    dense, ticket = found.summaries()
    usual = estimate_scores([Score(v / 1e300, 0.5, 9, DELTA) for v in huge], "word_perplexity")
    score = dense.scores["validation"]
    assert (score.std, score.low) == pytest.approx((usual.std * 1e300, usual.low * 1e300))
    paired, other = estimate_difference(dense, ticket, "validation"), Summary(ticket.cells[:2])
    assert paired.estimate.high == pytest.approx(score.high)
    moved = Summary(tuple(one.model_copy(update={"seed": one.seed + 9}) for one in other.cells))
    assert 1 < estimate_difference(dense, moved, "validation").estimate.high / 1e300 < 1000
    assert found.rows()[1]["p"] == pytest.approx(paired_t(np.array([1.0, 2.0, 4.0])))
